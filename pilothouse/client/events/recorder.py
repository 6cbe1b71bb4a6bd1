"""EventRecorder: asynchronous recording of core/v1 Events.

recorder = EventRecorder(client, EventSource("my-controller"))
recorder.event(pod, NORMAL, "Scheduled", "put on node a")     # from anywhere in the event loop
async with asyncio.TaskGroup() as tasks: tasks.create_task(recorder.run())
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from typing import NoReturn

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.events.correlator import Correlated, CorrelatorOptions, EventCorrelator
from pilothouse.client.events.event import NORMAL, WARNING, EventSource, new_event, reference_to
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import PatchType
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

MAX_QUEUED = 1000
MAX_TRIES = 12
RETRY_DELAY = 10.0


class QueuedRecorder:
    """Base of recorders. Recording never blocks; events that exceed the queue are dropped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: asyncio.Queue[Json] = asyncio.Queue(MAX_QUEUED)
        self._dropped = DroppedEvents(clock)

    async def flush(self) -> None:
        """Return when all recorded events were written or given up. Requires `run` to be running."""
        await self._queue.join()

    def _enqueue(self, event: Json, regarding: Json) -> None:
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._dropped.one_more(f"{event['reason']} about {regarding.get('name')}")


class EventRecorder(QueuedRecorder):
    """Records events about objects. Recording never blocks; events that exceed the queue are dropped.

    >>> import asyncio
    >>> from pilothouse.client import NORMAL, EventRecorder, EventSource
    >>> recorder = EventRecorder(client, EventSource("my-controller"))
    >>> recorder.event(await client.resource("v1", "namespaces").get("default"), NORMAL, "Seen", "It is there.")
    >>> writing = asyncio.create_task(recorder.run())
    >>> async with await client.resource("v1", "events", namespace="default").watch() as events:
    ...     print((await anext(events)).object["message"])
    It is there.
    >>> _ = writing.cancel()
    """

    def __init__(
        self,
        client: Client,
        source: EventSource,
        *,
        options: CorrelatorOptions = CorrelatorOptions(),  # noqa: B008  (immutable)
        clock: Clock = REAL_CLOCK,
    ) -> None:
        super().__init__(clock)
        self._events = client.resource("v1", "events")
        self._source = source
        self._correlator = EventCorrelator(clock, options)

    def event(self, obj: Json, type_: str, reason: str, message: str, **annotations: str) -> None:
        """Record an event about an object; `type_` is NORMAL or WARNING."""
        if type_ not in (NORMAL, WARNING):
            raise ValueError(f"unsupported event type: {type_!r}")
        regarding, now = reference_to(obj), self._clock.wall()
        event = new_event(regarding, self._source, type_=type_, reason=reason, message=message, now=now)
        if annotations:
            metadata(event)["annotations"] = annotations
        self._enqueue(event, regarding)

    async def run(self) -> NoReturn:
        """Write recorded events in order until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._record(event)
            finally:
                self._queue.task_done()

    async def _record(self, event: Json) -> None:
        correlated = self._correlator.correlate(event)
        if correlated is None:
            return
        for attempt in range(MAX_TRIES):
            if attempt:
                # Randomise the first delay, so that clients do not retry simultaneously when a server comes back.
                await self._clock.sleep(RETRY_DELAY * (random.random() if attempt == 1 else 1.0))
            try:
                self._correlator.written(await write_event(self._events, correlated))
                return
            except (StatusError, InvalidResponse) as error:
                logger.debug("server rejected event %s: %s", event["reason"], error)
                return
            except ConnectionFailed as error:
                logger.warning("unable to write event %s (may retry): %s", event["reason"], error)
        logger.error("unable to write event %s, gave up", event["reason"])


async def write_event(everywhere: ResourceClient, correlated: Correlated) -> Json:
    """Patch the event, or create it if it is new or was deleted. Return the stored event."""
    event = correlated.event
    events = everywhere.namespace(event["metadata"]["namespace"])
    if correlated.patch is not None:
        try:
            return await events.patch(event["metadata"]["name"], correlated.patch, PatchType.STRATEGIC)
        except NotFound:
            logger.debug("event %s is gone from the server, creating it again", event["metadata"]["name"])
    return await events.create(event)


LOG_PERIOD = 30.0
"""Seconds between two log lines of one recorder."""


class DroppedEvents:
    """Counts dropped events; logs the first immediately and later ones in batches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unlogged = 0
        self._logged_at = -math.inf

    def one_more(self, description: str) -> None:
        self._unlogged += 1
        if self._clock.now() - self._logged_at >= LOG_PERIOD:
            logger.error("too many queued events, dropped %d, the last was %s", self._unlogged, description)
            self._unlogged, self._logged_at = 0, self._clock.now()
