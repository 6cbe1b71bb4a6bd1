"""Effects of a fault on a request, applied after authentication and before the API handler."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlencode

from pilothouse.apiserver.http import Handler, Request, Response, StreamBroken
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, DelegatingWatcher
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.faults.fault import Fault, fits_pattern
from pilothouse.bench.scope import Traffic
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Expired
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class Misbehavior:
    """Applies the effects of faults."""

    store: Store
    traffic: Traffic

    async def answer(self, fault: Fault, request: Request, handler: Handler) -> Response:
        """Return the response to a request that the fault hits. Raises the StatusError of the fault."""
        if delay := fault.delay:
            await asyncio.sleep(delay)
        if (refusal := fault.refusal) is not None:
            if request.info.verb != "watch" or refusal.code != Expired.code:
                raise refusal
            return await self._watch({"watch": {"expireAfterEvents": 0}}, request, handler)
        if fault.effect.get("cut"):
            when = fault.effect["cut"]
            if when == "After":
                with suppress(StatusError):  # the client never sees the result
                    await handler(request)
            cut(request)
            return Response(200, _broken())
        if fault.effect.get("hold"):
            return await self._hold(fault, request, handler)
        if revision := fault.effect.get("atRevision"):
            return await self._stand_still(fault, revision, request, handler)
        if fault.effect.get("staleByRevisions") and request.info.verb == "list":
            # Serve an older revision; the current one if the older revision is compacted.
            if request.param("continue") or request.param("resourceVersion") not in ("", "0"):
                return await handler(request)
            past = max(await self.store.current_revision() - fault.effect["staleByRevisions"], 1)
            return await _list_at(past, request, handler)
        if request.info.verb == "watch":
            return await self._watch(fault.effect, request, handler)
        return await handler(request)

    def select_events(self, fault: Fault, request: Request) -> None:
        """Apply the effect on selected events to the watch of the request."""
        follow = request.watched

        def selecting(watcher: CacheWatcher) -> CacheWatcher:
            return SelectingWatcher(watcher if follow is None else follow(watcher), fault, self.store)

        request.watched = selecting

    async def _hold(self, fault: Fault, request: Request, handler: Handler) -> Response:
        when = fault.effect["hold"]
        if when == "After":
            with suppress(StatusError):  # the client never sees the result
                await handler(request)
        with self.traffic.held():
            await fault.deleted.wait()
        if when == "Through":
            return await handler(request)
        cut(request)
        return Response(200, _broken())

    async def _stand_still(self, fault: Fault, revision: int, request: Request, handler: Handler) -> Response:
        """Serve lists from the revision if the client accepts cached data; hold later events of watches."""
        verb, version = request.info.verb, request.param("resourceVersion")
        if verb == "watch":
            follow = request.watched

            def standing(watcher: CacheWatcher) -> CacheWatcher:
                return StandingWatcher(watcher if follow is None else follow(watcher), fault, revision)

            request.watched = standing
            return await handler(request)
        exact = request.param("continue") or request.param("resourceVersionMatch") == "Exact"
        if verb != "list" or exact or not version.isdigit() or int(version) > revision:
            return await handler(request)
        return await _list_at(revision, request, handler)

    async def _watch(self, effect: Json, request: Request, handler: Handler) -> Response:
        follow = request.watched

        def faulty(watcher: CacheWatcher) -> CacheWatcher:
            followed = watcher if follow is None else follow(watcher)
            return FaultyWatcher(followed, effect, self.store, partial(cut, request))

        request.watched = faulty
        return await handler(request)


async def _list_at(revision: int, request: Request, handler: Handler) -> Response:
    original = request.query_string
    changed = {**request.query, "resourceVersion": [str(revision)], "resourceVersionMatch": ["Exact"]}
    request.set_query(urlencode(changed, doseq=True))
    try:
        return await handler(request)
    except Expired:
        request.set_query(original)
        return await handler(request)


def cut(request: Request) -> None:
    """Abort the connection. An in-process call has none, and sees a broken stream."""
    if request.transport is not None:
        request.transport.abort()


async def _broken() -> AsyncIterator[bytes]:
    raise StreamBroken("a Fault cut the connection")
    yield b""  # makes this function a generator


class StandingWatcher(DelegatingWatcher):
    """Watcher that holds events after a revision until its fault is deleted."""

    def __init__(self, watcher: CacheWatcher, fault: Fault, revision: int) -> None:
        super().__init__(watcher)
        self._fault = fault
        self._revision = revision

    async def __anext__(self) -> WatchEvent:
        event = await self._watcher.__anext__()
        if event.revision > self._revision:
            await _until_deleted(self._fault, self._watcher)
        return event

    def drain(self) -> list[WatchEvent]:
        return self._watcher.drain() if self._fault.deleted.is_set() else []


async def _until_deleted(fault: Fault, watcher: CacheWatcher) -> None:
    """Hold a watch until its fault is deleted. Raises StopAsyncIteration if the watch ends before."""
    watcher.is_held = True
    try:
        while not fault.deleted.is_set():
            if watcher.has_closed():
                raise StopAsyncIteration
            with suppress(TimeoutError):
                await asyncio.wait_for(fault.deleted.wait(), _POLL_INTERVAL)
    finally:
        watcher.is_held = False


class SelectingWatcher(DelegatingWatcher):
    """Watcher that applies `effect.events` of a fault. The fault counts the selected events of all its watches."""

    def __init__(self, watcher: CacheWatcher, fault: Fault, store: Store) -> None:
        super().__init__(watcher)
        self._fault = fault
        self._store = store
        self._spec: Json = fault.effect["events"]
        self._ready: deque[WatchEvent] = deque()

    async def __anext__(self) -> WatchEvent:
        """Return the next event. Raises Compacted for an expired watch."""
        while True:
            if self._ready:
                return self._ready.popleft()
            event = await self._watcher.__anext__()
            if not self._is_selected(event):
                return event
            self._fault.reached.set()
            effect = self._spec["effect"]
            if effect == "Expire":
                raise Compacted(event.revision, await self._store.current_revision())
            if effect == "Duplicate":
                self._ready.append(event)
                return event
            if effect.startswith("Hold"):
                await _until_deleted(self._fault, self._watcher)
            if effect == "Hold":
                return event
            if effect == "HoldThenExpire":
                raise Compacted(event.revision, await self._store.current_revision())
            if effect == "HoldLatest":
                self._ready.extend(_latest_of([event, *self._watcher.drain()]))

    def drain(self) -> list[WatchEvent]:
        """Return an empty list: events are read by `__anext__`, which applies the effect."""
        return []

    def _is_selected(self, event: WatchEvent) -> bool:
        """Whether the effect applies to the event; only to the first selected event after the skipped ones."""
        if event.type == EventType.BOOKMARK or self._fault.reached.is_set():
            return False
        types = self._spec.get("types")
        if types and event.type.value not in types:
            return False
        namespace, name = _place_of(event)
        namespaces = self._spec.get("namespaces")
        if (namespaces and namespace not in namespaces) or not fits_pattern(self._spec.get("names") or (), name):
            return False
        self._fault.passed_events += 1
        return self._fault.passed_events > (self._spec.get("skip") or 0)


def _place_of(event: WatchEvent) -> tuple[str, str]:
    """Return namespace and name of the event's object."""
    metadata = event.object.parse()["metadata"]
    return metadata.get("namespace") or "", metadata.get("name") or ""


def _latest_of(events: list[WatchEvent]) -> list[WatchEvent]:
    """Return the latest event of each object, in order. An object that is new and already deleted has no event."""
    latest: dict[tuple[str, str], WatchEvent] = {}
    first: dict[tuple[str, str], EventType] = {}
    for event in events:
        place = _place_of(event)
        first.setdefault(place, event.type)
        latest.pop(place, None)
        latest[place] = event
    return [event for place, event in latest.items() if (first[place], event.type) != _NEVER_SEEN]


_NEVER_SEEN: Final = (EventType.ADDED, EventType.DELETED)


_POLL_INTERVAL: Final = 0.01


class FaultyWatcher(DelegatingWatcher):
    """Watcher that drops, duplicates, delays or cuts the events of another watcher."""

    def __init__(self, watcher: CacheWatcher, effect: Json, store: Store, cut: Callable[[], None]) -> None:
        super().__init__(watcher)
        watch = effect.get("watch") or {}
        self._store = store
        self._cut = cut
        self._cut_after: int | None = watch.get("cutAfterEvents")
        self._expire_after: int | None = watch.get("expireAfterEvents")
        self._drop: int = watch.get("dropEvery") or 0
        self._duplicate: int = watch.get("duplicateEvery") or 0
        self._lag: int = effect.get("staleByRevisions") or 0
        self._again: deque[WatchEvent] = deque()
        self._seen = 0
        self._last = 0

    async def __anext__(self) -> WatchEvent:
        """Return the next event. Raises StreamBroken for a cut connection, Compacted for an expired watch."""
        if self._again:
            return self._again.popleft()
        while True:
            if self._cut_after is not None and self._seen >= self._cut_after:
                self._cut()
                raise StreamBroken("a Fault cut the watch")
            if self._expire_after is not None and self._seen >= self._expire_after:
                raise Compacted(self._last, await self._store.current_revision())
            event = await self._watcher.__anext__()
            if self._lag:
                # Wait until the store is ahead of the event by the configured lag.
                self._watcher.is_held = True
                while await self._store.current_revision() < event.revision + self._lag:
                    if self._watcher.has_closed():
                        raise StopAsyncIteration
                    await asyncio.sleep(_POLL_INTERVAL)
                self._watcher.is_held = False
            self._last = event.revision
            if event.type == EventType.BOOKMARK:
                return event
            self._seen += 1
            if self._duplicate and self._seen % self._duplicate == 0:
                self._again.append(event)
            if not (self._drop and self._seen % self._drop == 0):
                return event

    def drain(self) -> list[WatchEvent]:
        """Return an empty list: events are read by `__anext__`, which applies the faults."""
        return []
