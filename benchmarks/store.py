"""How fast a store is: `python benchmarks/store.py [directory]`, or with the URL of an empty etcd instead.

Each line is one measurement. The directory must be on the disk in question: a durable write waits for it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

VALUE = b"x" * 1000
SECONDS = 1.5
KEYS = 5000


async def embedded(directory: Path) -> None:
    store = await SqliteStore.open(directory / "writes")
    await _writes(store)
    await store.close()
    await _reads(directory / "reads")
    await _start(directory / "reads")


async def etcd(url: str) -> None:
    from pilothouse.apiserver.storage.etcd.store import EtcdStore

    store = await EtcdStore.connect([url], compaction_interval=0)
    await _writes(store)
    await asyncio.gather(*(store.create(f"/registry/pods/default/{i:06}", VALUE) for i in range(KEYS)))
    for readers in (1, 64):
        await _report(f"get, {readers} at a time", _parallel_gets(store, readers))
        await _report(f"current revision, {readers} at a time", _revisions(store, readers))
    await _report(f"list {KEYS}, entries", _lists(store, times=10))
    await _report("watch from etcd, events", _drain(store, after=1, events=KEYS))
    await _report("watch live while 500 at a time write, events", _live_events(store))
    await _report("write and progress of a quiet watch", _progress(store))
    await store.close()


async def _writes(store: Store) -> None:
    for writers in (1, 8, 32, 64):
        await _report(f"create, {writers} at a time", _creates(store, writers))
    await _report("update one key", _updates(store))


async def _reads(directory: Path) -> None:
    store = await SqliteStore.open(directory)
    await asyncio.gather(*(store.create(f"/registry/pods/default/{i:06}", VALUE) for i in range(KEYS)))
    await _report("get", _gets(store))
    await _report(f"list {KEYS}, entries", _lists(store))
    await _report("list 500 at an older revision, pages", _older_pages(store))
    await _report("watch live while 500 at a time write, events", _live_events(store))
    await store.close()
    await _report("watch from the file, events", _replays(directory))


async def _report(what: str, measure: Awaitable[int]) -> None:
    started = time.perf_counter()
    done = await measure
    seconds = time.perf_counter() - started
    print(f"{what:<44} {done / seconds:>12,.0f} /s")


async def _creates(store: Store, writers: int) -> int:
    end = time.perf_counter() + SECONDS
    done = 0

    async def write(writer: int) -> None:
        nonlocal done
        while time.perf_counter() < end:
            done += 1
            await store.create(f"/registry/configmaps/default/{writers}-{writer}-{done}", VALUE)

    await asyncio.gather(*map(write, range(writers)))
    return done


async def _updates(store: Store) -> int:
    entry = await store.create("/registry/configmaps/default/one", VALUE)
    done, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        done += 1
        entry = await store.update(entry.key, VALUE, expected=entry.modified)
    return done


async def _gets(store: SqliteStore) -> int:
    keys = [f"/registry/pods/default/{i:06}" for i in range(KEYS)]
    for _ in range(20):
        for key in keys:
            await store.get(key)
    return 20 * KEYS


async def _parallel_gets(store: Store, readers: int) -> int:
    return await _repeat(lambda i: store.get(f"/registry/pods/default/{i % KEYS:06}"), readers)


async def _revisions(store: Store, readers: int) -> int:
    return await _repeat(lambda _: store.current_revision(), readers)


async def _repeat(operation: Callable[[int], Awaitable[object]], workers: int) -> int:
    """How often the operation was done in the time for one measurement, by that many at a time."""
    end = time.perf_counter() + SECONDS
    done = 0

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < end:
            done += 1
            await operation(done)

    await asyncio.gather(*(work() for _ in range(workers)))
    return done


async def _lists(store: Store, *, times: int = 200) -> int:
    return sum([len((await store.list("/registry/pods/")).entries) for _ in range(times)])


async def _older_pages(store: SqliteStore) -> int:
    at = await store.current_revision()
    await asyncio.gather(*(store.create(f"/registry/pods/other/{i}", VALUE) for i in range(1000)))
    for _ in range(200):
        await store.list("/registry/pods/default/", at=at, after="/registry/pods/default/002", limit=500)
    return 200


async def _replays(directory: Path) -> int:
    """A store that has just been opened has nothing in memory, so all comes from the file."""
    store = await SqliteStore.open(directory)
    seen = await _drain(store, after=1, events=await store.count(""))
    await store.close()
    return seen


async def _live_events(store: Store) -> int:
    watching = asyncio.create_task(_drain(store, after=await store.current_revision(), events=20 * KEYS // 10))
    for start in range(0, 20 * KEYS // 10, 500):
        await asyncio.gather(*(store.create(f"/registry/pods/{start + i}", VALUE) for i in range(500)))
    return await watching


async def _progress(store: Store) -> int:
    """Each round is what a consistent read costs when another resource has changed last."""
    watch = store.watch("/registry/quiet/", after=await store.current_revision())
    rounds = 500
    for i in range(rounds):
        entry = await store.create(f"/registry/noise/{i}", VALUE)
        reached = 0
        while reached < entry.modified:
            await watch.request_progress()
            reached = (await anext(watch)).revision
    await watch.aclose()
    return rounds


async def _drain(store: Store, *, after: int, events: int) -> int:
    seen = 0
    watch = store.watch("/registry/", after=after)
    async for batch in watch:
        seen += len(batch.events)
        if seen >= events:
            break
    await watch.aclose()
    return seen


async def _start(directory: Path) -> None:
    store = await SqliteStore.open(directory / "large")
    for start in range(0, 100_000, 1000):
        await asyncio.gather(*(store.create(f"/registry/pods/{start + i}", VALUE) for i in range(1000)))
    await store.close()
    started = time.perf_counter()
    store = await SqliteStore.open(directory / "large")
    print(f"{'open with 100,000 entries of 1 kB':<44} {time.perf_counter() - started:>12.2f} s")
    await store.close()


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else None
    if where is not None and where.startswith("http"):
        uvloop.run(etcd(where))
    else:
        with tempfile.TemporaryDirectory(dir=where) as scratch:
            uvloop.run(embedded(Path(scratch)))
