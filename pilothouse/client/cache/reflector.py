"""Reflector: keeps a store in sync with a collection by list and watch, and recovers from errors.

Guarantees: the store receives every object of a list, then every event in server order. A watch that ends or breaks is
resumed from the last event or bookmark. When that version has expired (410), the reflector lists again at a version
that is not older than any seen version, so the store never goes back in time. The initial state is streamed
(`sendInitialEvents`) if the server supports streaming, and listed in pages otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from pilothouse.client import garbage_collection
from pilothouse.client.cache import list_watch
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.watch import WatchEvent
from pilothouse.client.wait import Backoff
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json

logger = logging.getLogger(__name__)

MIN_WATCH_TIMEOUT = 300.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

# The delay stops growing at 30–60 s. Two minutes without a failure reset the backoff.
BACKOFF = Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=38, cap=30.0)
BACKOFF_RESET = 120.0
_UNREACHABLE = 2
"""Failed attempts in a row after which a reflector no longer counts as behind."""


class ReflectorStore(Protocol):
    def add(self, obj: Json) -> None: ...
    def update(self, obj: Json) -> None: ...
    def delete(self, obj: Json) -> None: ...
    def replace(self, objects: list[Any]) -> None: ...
    def resync(self) -> None: ...


class Reflector:
    def __init__(
        self,
        source: list_watch.ListerWatcher,
        store: ReflectorStore,
        *,
        name: str = "reflector",
        resync_period: float = 0.0,
        should_resync: Callable[[], bool] = lambda: True,
        use_watch_list: bool = True,
        hold: Callable[[Json], Any] = lambda obj: obj,
        on_watch_error: list_watch.WatchErrorHandler = list_watch.log_watch_error,
        backoff: Backoff = BACKOFF,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """`hold` returns the form in which objects of a stream wait for the end of the initial events."""
        self.name = name
        self._source = source
        self._store = store
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._use_watch_list = use_watch_list
        self._hold = hold
        self._on_watch_error = on_watch_error
        self._delay = backoff.delays_with_reset(BACKOFF_RESET, clock)
        self._clock = clock
        self._position = SyncPosition()
        self._watching = False
        self._failures = 0  # failed attempts in a row, without expired watches
        self._paginated = False  # the server paginates lists at "0", so has no watch cache: always request pages

    @property
    def last_sync_resource_version(self) -> str:
        return self._position.resource_version

    @property
    def is_behind(self) -> bool:
        """Whether the reflector is about to list or to watch; False if the server rejects or misses two attempts."""
        return not self._watching and self._failures < _UNREACHABLE

    async def run(self) -> NoReturn:
        """Run until cancelled."""
        while True:
            try:
                await self.list_and_watch()
            except Exception as error:
                self._failures += not list_watch.is_expired(error)
                try:
                    self._on_watch_error(self.name, error)
                except Exception as failure:
                    log_failed_attempt(logger, failure, "%s: the watch error handler failed", self.name)
            await self._clock.sleep(self._delay())

    async def list_and_watch(self) -> None:
        """Run one attempt: synchronise the store, then watch until the watch cannot be resumed."""
        watch = await self._watch_list() if self._use_watch_list else None
        if watch is None:
            await self._list()
        resync = asyncio.ensure_future(self._resync_periodically())
        try:
            await self._watch(watch)
        finally:
            resync.cancel()

    async def _list(self) -> None:
        version = self._position.for_list
        try:
            listing = await self._list_at(version)
        except Exception as error:
            if not list_watch.is_expired(error) and not list_watch.is_too_large_resource_version(error):
                raise
            self._position.unavailable = True
            listing = await self._list_at(self._position.for_list)
        if version == "0" and listing.paginated:
            self._paginated = True
        self._replace(listing.items, listing.resource_version)

    async def _list_at(self, version: str) -> list_watch.Listing:
        # A limit would make a list at an exact version bypass the server's watch cache.
        exact = version not in ("", "0") and not self._paginated
        return await list_watch.list_all(self._source, version, 0 if exact else list_watch.PAGE_SIZE)

    async def _watch_list(self) -> list_watch.OpenWatch | None:
        """Stream the state into the store. Return the open watch, or None if the server does not support streaming."""
        while True:
            options = ListOptions(
                resource_version=self._position.for_watch_list,
                resource_version_match="NotOlderThan",
                send_initial_events=True,
                allow_watch_bookmarks=True,
                timeout_seconds=_watch_timeout(),
            )
            try:
                return await self._stream_state(options)
            except Exception as error:
                if not await self._may_stream_again(error):
                    logger.debug("%s: falling back to a list: %s", self.name, error)
                    return None

    async def _may_stream_again(self, error: Exception) -> bool:
        if list_watch.is_retriable(error):
            self._failures += 1
            await self._clock.sleep(self._delay())
            return True
        if list_watch.is_expired(error) or list_watch.is_too_large_resource_version(error):
            self._position.unavailable = True
            return True
        return False

    async def _stream_state(self, options: ListOptions) -> list_watch.OpenWatch:
        state = _InitialState(self._hold)
        watch = await self._source.watch(options)
        try:
            async for event in watch:
                version = state.take(event)
                if version is not None:
                    self._replace([*state.objects.values()], version)
                    return watch
            raise ConnectionFailed("the stream ended before the end of its initial events")
        except BaseException:
            await watch.aclose()
            raise

    def _replace(self, objects: list[Any], version: str) -> None:
        with garbage_collection.paused(0):
            self._store.replace(objects)
        self._position.reached(version)

    async def _watch(self, watch: list_watch.OpenWatch | None) -> NoReturn:
        """Follow the watch and its successors. Raises when only a new list can recover."""
        while True:
            started = self._clock.now()
            try:
                if watch is None:
                    watch = await self._source.watch(
                        ListOptions(
                            resource_version=self._position.resource_version,
                            allow_watch_bookmarks=True,
                            timeout_seconds=_watch_timeout(),
                        )
                    )
                events = await self._follow(watch)
            except Exception as error:
                if not list_watch.is_retriable(error):
                    raise
                self._failures += 1
                await self._clock.sleep(self._delay())
            else:
                if events == 0 and self._clock.now() - started < 1.0:
                    raise list_watch.VeryShortWatch(self.name)
            watch = None

    async def _follow(self, watch: list_watch.OpenWatch) -> int:
        """Apply the events to the store until the watch ends; return the number of events."""
        count = 0
        self._watching, self._failures = True, 0
        try:
            async for event in watch:
                self._apply(event)
                count += 1
        except ConnectionFailed as error:
            logger.debug("%s: watch broke off: %s", self.name, error)
        finally:
            self._watching = False
            await watch.aclose()
        return count

    def _apply(self, event: WatchEvent) -> None:
        obj = event.object
        change = _CHANGES.get(event.type)
        if change is not None:
            try:
                change(self._store, obj)
            except Exception as error:
                log_failed_attempt(logger, error, "%s: cannot store a watch event", self.name)
        elif event.type == "ERROR":
            raise from_status(obj)
        elif event.type != "BOOKMARK":
            logger.error("%s: unknown watch event %r", self.name, event.type)
            return
        self._position.resource_version = obj["metadata"]["resourceVersion"]

    async def _resync_periodically(self) -> None:
        while self._resync_period > 0:
            await self._clock.sleep(self._resync_period)
            if self._should_resync():
                self._store.resync()


_CHANGES: dict[str, Callable[[ReflectorStore, Json], None]] = {
    "ADDED": lambda store, obj: store.add(obj),
    "MODIFIED": lambda store, obj: store.update(obj),
    "DELETED": lambda store, obj: store.delete(obj),
}


class _InitialState:
    """Objects of a stream before the end of its initial events."""

    def __init__(self, hold: Callable[[Json], Any]) -> None:
        self._hold = hold
        self.objects: dict[str, Any] = {}

    def take(self, event: WatchEvent) -> str | None:
        """Apply the event. Return the resource version if the event completes the state, else None."""
        obj = event.object
        if event.type in ("ADDED", "MODIFIED"):
            self.objects[meta_namespace_key(obj)] = self._hold(obj)
        elif event.type == "DELETED":
            self.objects.pop(meta_namespace_key(obj), None)
        elif event.type == "ERROR":
            raise from_status(obj)
        elif (obj["metadata"].get("annotations") or {}).get(INITIAL_EVENTS_END) == "true":
            return str(obj["metadata"]["resourceVersion"])
        return None


def _watch_timeout() -> int:
    """Return 5 to 10 minutes, in seconds, at random: watches with a common start end at different times."""
    return int(random.uniform(MIN_WATCH_TIMEOUT, 2 * MIN_WATCH_TIMEOUT))


@dataclass(slots=True)
class SyncPosition:
    """Resource version of the last list, event or bookmark that was applied to the store."""

    resource_version: str = ""
    unavailable: bool = False
    """The server no longer has, or does not have yet, the state at `resource_version`."""

    def reached(self, resource_version: str) -> None:
        """Record that the store holds a list at `resource_version`."""
        self.resource_version = resource_version
        self.unavailable = False

    @property
    def for_list(self) -> str:
        """Resource version for a list.

        "0" (any state) at first; later not older than any seen state, so that the store never goes back in time; ""
        (newest) if the server does not have that state.
        """
        return "" if self.unavailable else self.resource_version or "0"

    @property
    def for_watch_list(self) -> str:
        """Resource version for a stream: as `for_list`, but the first stream requests the newest state."""
        return "" if self.unavailable else self.resource_version
