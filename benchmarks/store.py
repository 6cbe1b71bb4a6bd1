"""How fast the embedded store is on this disk: `python benchmarks/store.py [directory]`.

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

from pilothouse.apiserver.storage.sqlite.store import SqliteStore

VALUE = b"x" * 1000
SECONDS = 1.5
KEYS = 5000


async def main(directory: Path) -> None:
    store = await SqliteStore.open(directory / "writes")
    for writers in (1, 8, 32, 64):
        await _report(f"create, {writers} at a time", lambda n=writers: _creates(store, n))
    await _report("update one key, 64 writers in turn", lambda: _updates(store))
    await store.close()
    await _reads(directory / "reads")
    await _start(directory / "reads")


async def _reads(directory: Path) -> None:
    store = await SqliteStore.open(directory)
    await asyncio.gather(*(store.create(f"/registry/pods/default/{i:06}", VALUE) for i in range(KEYS)))
    await _report("get", lambda: _gets(store))
    await _report(f"list {KEYS}, entries", lambda: _lists(store))
    await _report("list 500 at an older revision, pages", lambda: _older_pages(store))
    await _report("watch from the file, events", lambda: _replays(directory, store))
    await _report("watch live while writing, events", lambda: _live_events(store))
    await store.close()


async def _report(what: str, measure: Callable[[], Awaitable[int]]) -> None:
    started = time.perf_counter()
    done = await measure()
    seconds = time.perf_counter() - started
    print(f"{what:<40} {done / seconds:>12,.0f} /s")


async def _creates(store: SqliteStore, writers: int) -> int:
    end = time.perf_counter() + SECONDS
    done = 0

    async def write(writer: int) -> None:
        nonlocal done
        while time.perf_counter() < end:
            done += 1
            await store.create(f"/registry/configmaps/default/{writers}-{writer}-{done}", VALUE)

    await asyncio.gather(*map(write, range(writers)))
    return done


async def _updates(store: SqliteStore) -> int:
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


async def _lists(store: SqliteStore) -> int:
    return sum([len((await store.list("/registry/pods/")).entries) for _ in range(200)])


async def _older_pages(store: SqliteStore) -> int:
    at = await store.current_revision()
    await asyncio.gather(*(store.create(f"/registry/pods/other/{i}", VALUE) for i in range(1000)))
    for _ in range(200):
        await store.list("/registry/pods/default/", at=at, after="/registry/pods/default/002", limit=500)
    return 200


async def _replays(directory: Path, store: SqliteStore) -> int:
    """Another opening of the same file has nothing in memory, so all comes from disk."""
    await store.close()
    again = await SqliteStore.open(directory)
    expected = await again.count("")
    seen = await _drain(again, after=1, events=expected)
    await again.close()
    return seen


async def _live_events(_: SqliteStore) -> int:
    with tempfile.TemporaryDirectory() as directory:
        store = await SqliteStore.open(Path(directory))
        watching = asyncio.create_task(_drain(store, after=await store.current_revision(), events=20 * KEYS // 10))
        for start in range(0, 20 * KEYS // 10, 500):
            await asyncio.gather(*(store.create(f"/registry/pods/{start + i}", VALUE) for i in range(500)))
        seen = await watching
        await store.close()
        return seen


async def _drain(store: SqliteStore, *, after: int, events: int) -> int:
    seen = 0
    async for batch in store.watch("/registry/", after=after):
        seen += len(batch.events)
        if seen >= events:
            break
    return seen


async def _start(directory: Path) -> None:
    store = await SqliteStore.open(directory / "large")
    for start in range(0, 100_000, 1000):
        await asyncio.gather(*(store.create(f"/registry/pods/{start + i}", VALUE) for i in range(1000)))
    await store.close()
    started = time.perf_counter()
    store = await SqliteStore.open(directory / "large")
    print(f"{'open with 100,000 entries of 1 kB':<40} {time.perf_counter() - started:>12.2f} s")
    await store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as scratch:
        uvloop.run(main(Path(scratch)))
