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
from pilothouse.bench.faults.fault import Fault
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Expired
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class Misbehavior:
    """Applies the effects of faults."""

    store: Store

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
        if fault.effect.get("staleByRevisions") and request.info.verb == "list":
            # Serve an older revision; the current one if the older revision is compacted.
            original = request.query_string
            if request.param("continue") or request.param("resourceVersion") not in ("", "0"):
                return await handler(request)
            past = max(await self.store.current_revision() - fault.effect["staleByRevisions"], 1)
            changed = {**request.query, "resourceVersion": [str(past)], "resourceVersionMatch": ["Exact"]}
            request.set_query(urlencode(changed, doseq=True))
            try:
                return await handler(request)
            except Expired:
                request.set_query(original)
                return await handler(request)
        if request.info.verb == "watch":
            return await self._watch(fault.effect, request, handler)
        return await handler(request)

    async def _watch(self, effect: Json, request: Request, handler: Handler) -> Response:
        follow = request.watched

        def faulty(watcher: CacheWatcher) -> CacheWatcher:
            followed = watcher if follow is None else follow(watcher)
            return FaultyWatcher(followed, effect, self.store, partial(cut, request))

        request.watched = faulty
        return await handler(request)


def cut(request: Request) -> None:
    """Abort the connection. An in-process call has none, and sees a broken stream."""
    if request.transport is not None:
        request.transport.abort()


async def _broken() -> AsyncIterator[bytes]:
    raise StreamBroken("a Fault cut the connection")
    yield b""  # makes this function a generator


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
