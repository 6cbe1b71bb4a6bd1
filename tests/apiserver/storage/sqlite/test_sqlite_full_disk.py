"""A disk that is full or fails: writes fail cleanly, reads go on, and all is well again when the disk is."""

from __future__ import annotations

import asyncio
import resource
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
from storage_backends import SqliteBackend
from store_reading import next_events

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

# While it is entered, the disk under the store takes nothing more.
Trouble: TypeAlias = Callable[[], AbstractContextManager[None]]

VALUE = b"x" * 3000


@contextmanager
def small_disk(directory: Path) -> Iterator[Trouble]:
    """A real file system of 4 MB, and how to fill it up."""
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(directory)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount file systems")
    try:
        yield lambda: _filled(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextmanager
def _filled(directory: Path) -> Iterator[None]:
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield
    filler.unlink()


@contextmanager
def limited_files(directory: Path) -> Iterator[Trouble]:
    """The operating system refuses to make the log any longer than it is: an input/output error for SQLite."""
    directory.mkdir()

    @contextmanager
    def trouble() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((directory / "store/store.db-wal").stat().st_size, hard))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    yield trouble


@pytest.fixture(params=[small_disk, limited_files])
def trouble(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trouble]:
    with request.param(tmp_path / "disk") as trouble:
        yield trouble


@pytest.fixture
def place(trouble: Trouble, tmp_path: Path) -> SqliteBackend:
    return SqliteBackend(str(tmp_path / "disk" / "store"))


@pytest.fixture
async def frail(place: SqliteBackend) -> AsyncIterator[SqliteStore]:
    store = await place.open()
    await store.create("/registry/old", VALUE)
    yield store
    await store.close()


async def _create_many(store: SqliteStore, name: str) -> list[Entry | BaseException]:
    creates = (store.create(f"/registry/{name}/{i}", VALUE) for i in range(50))
    return await asyncio.gather(*creates, return_exceptions=True)


async def test_writes_fail_and_leave_nothing_behind_while_reads_go_on(frail: SqliteStore, trouble: Trouble) -> None:
    revision = await frail.current_revision()
    with trouble():
        first = asyncio.ensure_future(_create_many(frail, "first"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        behind = await _create_many(frail, "behind")
        assert {type(outcome) for outcome in [*await first, *behind]} == {Unavailable}
        assert await frail.current_revision() == revision
        assert (await frail.list("/registry/")).revision == revision
        assert await frail.count("/registry/") == 1


async def test_a_full_disk_leaves_no_doubt_about_what_was_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as trouble:
        store = await SqliteStore.open(tmp_path / "disk" / "store")
        with trouble():
            outcomes = await _create_many(store, "failed")
        assert {isinstance(outcome, Unavailable) and outcome.uncertain for outcome in outcomes} == {False}
        await store.close()


async def test_writing_goes_on_when_the_disk_is_well_again(
    frail: SqliteStore, place: SqliteBackend, trouble: Trouble
) -> None:
    revision = await frail.current_revision()
    watch = frail.watch("/registry/", after=revision)
    with trouble():
        await _create_many(frail, "failed")
    entries = [await frail.create(f"/registry/{i}", VALUE) for i in range(3)]
    assert [entry.modified for entry in entries] == [revision + 1, revision + 2, revision + 3]
    assert [event.entry for event in await next_events(watch, 3)] == entries
    await frail.close()
    again = await place.open()
    assert (await again.list("/registry/", after="/registry/", limit=3)).entries == entries
    assert await again.count("/registry/") == 4
    await again.close()


async def test_ping_fails_until_a_probe_gets_through(
    frail: SqliteStore, place: SqliteBackend, trouble: Trouble
) -> None:
    await frail.ping()
    with trouble():
        await _create_many(frail, "failed")
        with pytest.raises(Unavailable):
            await frail.ping()
        place.clock.advance(2)
        with pytest.raises(Unavailable):
            await frail.ping()
    with pytest.raises(Unavailable):  # a probe only now and then
        await frail.ping()
    place.clock.advance(2)
    await frail.ping()


async def test_ping_recovers_with_the_first_write_that_succeeds(frail: SqliteStore, trouble: Trouble) -> None:
    with trouble():
        await _create_many(frail, "failed")
    await frail.create("/registry/new", VALUE)
    await frail.ping()


async def test_no_write_is_refused_for_one_that_failed(frail: SqliteStore, trouble: Trouble) -> None:
    """Of two creates of one key, the second may not be told that the key exists when it does not."""
    old = await frail.get("/registry/old")
    assert old is not None
    with trouble():
        creates = [frail.create("/registry/new", VALUE) for _ in range(5)]
        updates = [frail.update("/registry/old", VALUE, expected=old.modified) for _ in range(5)]
        outcomes = await asyncio.gather(*creates, *updates, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {Unavailable}


async def test_a_write_built_on_one_that_failed_fails_too(frail: SqliteStore, trouble: Trouble) -> None:
    old = await frail.get("/registry/old")
    assert old is not None
    with trouble():
        delete = asyncio.ensure_future(frail.delete("/registry/old", expected=old.modified))
        pile = asyncio.ensure_future(_create_many(frail, "pile"))
        await asyncio.sleep(0)
        create = asyncio.ensure_future(frail.create("/registry/old", VALUE))
        await asyncio.wait([delete, create, pile])
        assert {type(delete.exception()), type(create.exception())} == {Unavailable}
    assert await frail.get("/registry/old") == old


async def test_an_expired_key_goes_when_the_disk_is_well_again(
    frail: SqliteStore, place: SqliteBackend, trouble: Trouble
) -> None:
    entry = await frail.create("/registry/short", VALUE, ttl=5)
    watch = frail.watch("/registry/", after=entry.modified)
    with trouble():
        place.clock.advance(6)
        await place.clock.until_asleep(1)
        assert await frail.get("/registry/short") == entry
    place.clock.advance(1)
    events = await next_events(watch, 1)
    assert (events[0].key, events[0].entry) == ("/registry/short", None)


async def test_compaction_that_fails_is_finished_by_the_next_one(frail: SqliteStore, trouble: Trouble) -> None:
    versions = [await frail.create("/registry/a", VALUE)]
    for _ in range(20):
        versions.append(await frail.update("/registry/a", VALUE, expected=versions[-1].modified))
    with trouble(), pytest.raises(Unavailable):
        await frail.compact(versions[-2].modified)
    await frail.compact(versions[-1].modified)
    assert (await frail.list("/registry/", at=versions[-1].modified)).entries[0] == versions[-1]
