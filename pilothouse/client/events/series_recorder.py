"""SeriesRecorder: recording of events.k8s.io/v1 Events, with repeated events combined into series.

The first event of a kind is created; the second turns it into a series of two. Further events are only counted. The
count is written when the series is half an hour old, and after six minutes without a new event, so a series costs the
server few writes.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import socket
from collections.abc import Callable, Hashable, Iterator

from pilothouse.client.clock import REAL_CLOCK, Clock, micro_time
from pilothouse.client.events.event import LRU, NORMAL, WARNING, event_name, reference_to
from pilothouse.client.events.recorder import MAX_TRIES, RETRY_DELAY, QueuedRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import PatchType
from pilothouse.client.wait import jitter
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)


class SeriesRecorder(QueuedRecorder):
    """Records events.k8s.io/v1 events; repeated events become a series. Recording never blocks; excess events are
    dropped.

    >>> import asyncio
    >>> from pilothouse.client import NORMAL, SeriesRecorder
    >>> recorder = SeriesRecorder(client, "my-controller")
    >>> namespace = await client.resource("v1", "namespaces").get("default")
    >>> recorder.event(namespace, NORMAL, "Seen", "Look", "It is there.")
    >>> writing = asyncio.create_task(recorder.run())
    >>> async with await client.resource("events.k8s.io/v1", "events", namespace="default").watch() as events:
    ...     print((await anext(events)).object["note"])
    It is there.
    >>> _ = writing.cancel()
    """

    def __init__(self, client: Client, controller: str, *, instance: str = "", clock: Clock = REAL_CLOCK) -> None:
        """`instance` defaults to the controller's name and this host."""
        super().__init__(clock)
        self._events = client.resource("events.k8s.io/v1", "events")
        self._reporter = Reporter(controller, instance or f"{controller}-{socket.gethostname()}")
        self._series = EventSeries(clock)

    def event(
        self, regarding: Json, type_: str, reason: str, action: str, note: str, *, related: Json | None = None
    ) -> None:
        """Record an action about an object and its reason; `type_` is NORMAL or WARNING."""
        if type_ not in (NORMAL, WARNING):
            raise ValueError(f"unsupported event type: {type_!r}")
        regarding_reference, related_reference = reference_to(regarding), reference_to(related) if related else None
        occurrence = Occurrence(type=type_, reason=reason, action=action, note=note)
        event = new_series_event(self._reporter, occurrence, regarding_reference, related_reference, self._clock.wall())
        self._enqueue(event, regarding_reference)

    async def run(self) -> None:
        """Write recorded events in order until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_recorded())
            tasks.create_task(self._write_every(REFRESHED_EVERY, self._series.running))
            tasks.create_task(self._write_every(FINISHED_AFTER, self._series.finished))

    async def _write_recorded(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                if to_write := self._series.add(event):
                    await self._record(to_write)
            finally:
                self._queue.task_done()

    async def _write_every(self, seconds: float, series: Callable[[], Iterator[Json]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            for event in [*series()]:
                await self._record(event)

    async def _record(self, event: Json) -> None:
        for _ in range(MAX_TRIES):
            if not await self._may_retry(event):
                return
            await self._clock.sleep(jitter(RETRY_DELAY, 0.25))
        logger.error("unable to write event %s, gave up", event["reason"])

    async def _may_retry(self, event: Json) -> bool:
        try:
            await self._write(event)
        except AlreadyExists as error:
            # A series whose event was created after the attempt to patch it: retry.
            logger.debug("server rejected event %s: %s", event["reason"], error)
            return "series" in event
        except (StatusError, InvalidResponse) as error:
            logger.error("server rejected event %s: %s", event["reason"], error)
        except ConnectionFailed as error:
            logger.warning("unable to write event %s (may retry): %s", event["reason"], error)
            return True
        return False

    async def _write(self, event: Json) -> None:
        events = self._events.namespace(event["metadata"]["namespace"])
        if "series" in event:
            try:
                await events.patch(event["metadata"]["name"], {"series": event["series"]}, PatchType.STRATEGIC)
                return
            except NotFound:
                logger.debug("event %s is gone from the server, creating it again", event["metadata"]["name"])
        await events.create(event)


FINISHED_AFTER = 360.0
REFRESHED_EVERY = 1800.0
CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Reporter:
    controller: str
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Action, reason (one word) and note (one sentence)."""

    type: str
    reason: str
    action: str
    note: str


def new_series_event(
    reporter: Reporter, occurrence: Occurrence, regarding: Json, related: Json | None, now: float
) -> Json:
    """Return an Event about `regarding`, an ObjectReference. Events about cluster-scoped objects go to "default"."""
    event = {
        "metadata": {"name": event_name(regarding["name"], now), "namespace": regarding.get("namespace") or "default"},
        "eventTime": micro_time(now),
        "reportingController": reporter.controller,
        "reportingInstance": reporter.instance,
        "action": occurrence.action,
        "reason": occurrence.reason,
        "regarding": regarding,
        "note": occurrence.note,
        "type": occurrence.type,
    }
    return event if related is None else {**event, "related": related}


@dataclass(slots=True)
class _Series:
    event: Json
    seen: float
    """Monotonic time of the last repetition."""


class EventSeries:
    """Recent events, keyed by all fields except note and time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: LRU[Hashable, _Series] = LRU(CACHE_SIZE)

    def add(self, event: Json) -> Json | None:
        """Return the event to write: a new event, or one that becomes a series. None if the event was only counted."""
        names = ("type", "action", "reason", "reportingController", "reportingInstance")
        references = (tuple(sorted((event.get(name) or {}).items())) for name in ("regarding", "related"))
        known = self._known.get(key := (*(event[name] for name in names), *references))
        if known is None:
            self._known.put(key, _Series(event, self._clock.now()))
            return copy.deepcopy(event)
        known.seen = self._clock.now()
        series = known.event.get("series")
        known.event["series"] = {
            "count": series["count"] + 1 if series else 2,
            "lastObservedTime": micro_time(self._clock.wall()),
        }
        return None if series else copy.deepcopy(known.event)

    def running(self) -> Iterator[Json]:
        """Yield all series that have not ended."""
        for known in self._known.values():
            if known.event.get("series"):
                yield copy.deepcopy(known.event)

    def finished(self) -> Iterator[Json]:
        """Remove events that were not repeated recently; yield the series among them."""
        for key, known in self._known.items():
            if known.seen < self._clock.now() - FINISHED_AFTER:
                self._known.drop(key)
                if known.event.get("series"):
                    yield known.event
