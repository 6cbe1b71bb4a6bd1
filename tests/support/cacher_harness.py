"""What the tests of the watch cache share: a clock they turn by hand, objects, and ways to look at events."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.selection import SelectionPredicate
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.selectors import labels

PREFIX = "/registry/configmaps/"
CODEC = ObjectCodec("ConfigMap", "v1", lambda obj: {"metadata.name": name_of(obj), "data.node": obj["data"]["node"]})
CONFIG_MAPS = GroupResource("", "configmaps")


class ManualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Time passes only in `advance`."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._order = count()
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._now + delay, next(self._order), timer))
        return timer

    @property
    def running(self) -> int:
        return sum(timer.callback is not None for _, _, timer in self._timers)

    async def advance(self, seconds: float) -> None:
        end = self._now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
                await settle()
        self._now = end


async def settle() -> None:
    """Lets every task run until it waits for something that only a test can bring about."""
    for _ in range(30):
        await asyncio.sleep(0)


def key(name: str, namespace: str = "ns") -> str:
    return f"{PREFIX}{namespace}/{name}"


def value(name: str, *, node: str = "", text: str = "", **own: str) -> bytes:
    metadata: Json = {"name": name, "uid": f"uid-{name}", "labels": own}
    return CODEC.encode({"metadata": metadata, "data": {"node": node, "text": text}})


async def put(store: Store, name: str, namespace: str = "ns", **content: str) -> Entry:
    """Creates the object, or replaces it."""
    where = key(name, namespace)
    old = await store.get(where)
    if old is None:
        return await store.create(where, value(name, **content))
    return await store.update(where, value(name, **content), expected=old.modified)


async def remove(store: Store, name: str, namespace: str = "ns") -> Entry:
    where = key(name, namespace)
    old = await store.get(where)
    assert old is not None
    return await store.delete(where, expected=old.modified)


def labelled(name: str, content: str) -> SelectionPredicate:
    return SelectionPredicate(labels.from_set({name: content}))


def text_of(obj: StoredObject) -> str:
    return str(obj.parse()["data"]["text"])


async def ready_events(watcher: CacheWatcher) -> list[tuple[str, str, int]]:
    """Type, name and resourceVersion of everything the watcher can be given now."""
    await settle()
    events = []
    while batch := watcher.drain():
        events += batch
    return [
        (event.type, name_of(obj), int(obj["metadata"]["resourceVersion"]))
        for event in events
        for obj in [event.object.parse()]
    ]


@asynccontextmanager
async def running(store: Store, **options: Any) -> AsyncIterator[Cacher]:
    cacher = Cacher(store, PREFIX, CODEC, resource=CONFIG_MAPS, **options)
    await cacher.start()
    await cacher.wait_ready()
    try:
        yield cacher
    finally:
        await cacher.stop()
