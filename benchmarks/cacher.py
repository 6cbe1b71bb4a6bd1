"""The cost of the watch cache on the embedded store, without HTTP: `python benchmarks/cacher.py`.

Each line is the mean of one kind of read or of fan-out; the machine should have nothing else to do.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import uvloop

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

PREFIX = "/registry/pods/"
CODEC = ObjectCodec("Pod", "v1", lambda obj: {"metadata.name": obj["metadata"]["name"]})
OBJECTS = 5_000
WATCHERS = 1_000


def value(name: str) -> bytes:
    pod: Json = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name[-1]}},
        "spec": {"containers": [{"name": f"c{i}", "image": "x" * 200} for i in range(6)]},
    }
    return CODEC.encode(pod)


async def timed(what: str, times: int, work: Callable[[], Awaitable[object]]) -> None:
    started = perf_counter()
    for _ in range(times):
        await work()
    each = (perf_counter() - started) / times
    print(f"{what:58} {each * 1e6:10.2f} µs {1 / each:12,.0f}/s")


async def reads(cacher: Cacher, store: SqliteStore) -> None:
    key = f"{PREFIX}default/p00042"
    other = await store.create("/registry/other", b"{}")

    async def after_a_foreign_write() -> None:
        nonlocal other
        other = await store.update("/registry/other", b"{}", expected=other.modified)
        await cacher.get(key)

    async def foreign_write() -> None:
        nonlocal other
        other = await store.update("/registry/other", b"{}", expected=other.modified)

    await timed("get, newest", 200_000, lambda: cacher.get(key))
    await timed("get, any revision", 200_000, lambda: cacher.get(key, not_older_than=0))
    await timed("a durable write to another resource", 500, foreign_write)
    await timed("the same, and a get that needs progress", 500, after_a_foreign_write)


def of_app_1(obj: StoredObject) -> bool:
    return obj.labels["app"] == "1"


async def lists(cacher: Cacher) -> None:
    await timed("list 5,000", 500, lambda: cacher.list(PREFIX))
    await timed(
        "list 500 of 5,000, second page", 2000, lambda: cacher.list(PREFIX, after=f"{PREFIX}default/p00500", limit=500)
    )
    await timed("list of 5,000 that looks at all, nothing read", 1, lambda: cacher.list(PREFIX, matches=of_app_1))
    await timed("list of 5,000 that looks at all", 200, lambda: cacher.list(PREFIX, matches=of_app_1))


async def count_events(watcher: CacheWatcher, wanted: int) -> None:
    seen = 0
    while seen < wanted:
        await anext(watcher)
        seen += 1 + len(watcher.drain())


async def fan_out(cacher: Cacher, store: SqliteStore, *, prefix: str, events: int = 200) -> None:
    """The time from the first write to the last watcher's last event; what the writes alone take is shown beside it."""
    watchers = [await cacher.watch(prefix, after=cacher.revision) for _ in range(WATCHERS)]
    reading = [asyncio.create_task(count_events(watcher, events)) for watcher in watchers]
    await asyncio.sleep(0)
    key = f"{PREFIX}default/p00001"
    entry = await store.get(key)
    assert entry is not None
    started = perf_counter()
    for _ in range(events):
        entry = await store.update(key, value("p00001"), expected=entry.modified)
    written = perf_counter() - started
    await asyncio.gather(*reading)
    total = perf_counter() - started
    print(f"{WATCHERS} watchers of {prefix}: an event reaches all in {total / events * 1e6:.0f} µs", end=" ")
    print(f"({total / events / WATCHERS * 1e6:.2f} µs each; the writes took {written / events * 1e6:.0f} µs)")
    for watcher in watchers:
        watcher.abandon()


async def dispatch_alone(cacher: Cacher) -> None:
    """Queueing one change to 1,000 watchers, without the tasks that read them."""
    watchers = [await cacher.watch(PREFIX, after=cacher.revision) for _ in range(WATCHERS)]
    obj = await cacher.get(f"{PREFIX}default/p00001")
    assert obj is not None

    async def dispatch() -> None:
        cacher._watchers.dispatch(CacheChange(cacher.revision + 1, obj.key, obj, obj, 0.0))

    await timed("dispatch 1 event to 1,000 watchers", 200, dispatch)
    for watcher in watchers:
        watcher.abandon()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.open(Path(folder) / "state.db")
        for first in range(0, OBJECTS, 100):
            names = [f"p{number:05}" for number in range(first, first + 100)]
            await asyncio.gather(*(store.create(f"{PREFIX}default/{name}", value(name)) for name in names))
        cacher = Cacher(store, PREFIX, CODEC, resource=GroupResource("", "pods"))
        started = perf_counter()
        await cacher.start()
        await cacher.wait_ready()
        print(f"filled with {OBJECTS:,} objects in {(perf_counter() - started) * 1e3:.0f} ms")
        await reads(cacher, store)
        await lists(cacher)
        await dispatch_alone(cacher)
        await fan_out(cacher, store, prefix=PREFIX)
        await fan_out(cacher, store, prefix=f"{PREFIX}default/p00001")
        await cacher.stop()
        await store.close()


uvloop.run(main())
