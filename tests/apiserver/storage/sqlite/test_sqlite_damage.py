"""A disk that returns other bytes than were written: what is damaged is refused by name, and never served."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from storage_backends import RemoteBackend
from store_clock import ManualClock
from store_reading import next_events

from pilothouse.apiserver.storage.errors import KeyExists, StorageError, Unavailable, Undecodable
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.sqlite.schema import FORMAT, DamagedStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

SEEDS = int(os.environ.get("FLIPPED_BIT_SEEDS", "2"))
"""Runs of hundreds of flipped bits."""
KEYS = [f"/registry/configmaps/default/{i:02}" for i in range(12)]


def _value(key: str) -> bytes:
    return f'{{"{key}":"{"x" * 1200}"}}'.encode()


async def _filled(directory: Path) -> dict[str, Entry]:
    """Rows that were replaced, deleted, compacted and not."""
    store = await SqliteStore.open(directory, compaction_interval=0)
    entries = {key: await store.create(key, b"old") for key in KEYS}
    await store.compact(await store.current_revision())
    for key, entry in entries.items():
        entries[key] = await store.update(key, _value(key), expected=entry.modified)
    gone = await store.create("/registry/gone", b"x")
    await store.delete(gone.key, expected=gone.modified)
    await store.close()
    return entries


def _flip(file: Path, position: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1 << bit
    file.write_bytes(content)


def _flip_inside(file: Path, text: bytes) -> None:
    """Flip a bit in the last place where the text is."""
    _flip(file, file.read_bytes().rindex(text), 0)


async def test_no_flipped_bit_of_the_file_is_served(tmp_path: Path) -> None:
    """Wherever it is, the store refuses to open, or refuses the key, or shows what was written."""
    entries = await _filled(tmp_path / "original")
    await _flip_many(tmp_path, entries, seed=1, times=100)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_flipped_bit_of_thousands_is_served(tmp_path: Path, seed: int) -> None:
    entries = await _filled(tmp_path / "original")
    await _flip_many(tmp_path, entries, seed=seed, times=1000)


async def _flip_many(scratch: Path, entries: dict[str, Entry], *, seed: int, times: int) -> None:
    size = (scratch / "original/store.db").stat().st_size
    chance, outcomes = random.Random(seed), set()
    for _ in range(times):
        shutil.rmtree(scratch / "copy", ignore_errors=True)
        shutil.copytree(scratch / "original", scratch / "copy")
        where = chance.randrange(size), chance.randrange(8)
        _flip(scratch / "copy/store.db", *where)
        found = await _look(scratch / "copy", entries)
        assert found <= {"refused to open", "refused the key", "as it was written"}, where
        outcomes |= found
    assert outcomes == {"refused to open", "refused the key", "as it was written"}


async def _look(directory: Path, entries: dict[str, Entry]) -> set[str]:
    try:
        store = await SqliteStore.open(directory, compaction_interval=0, fsync=False)
    except StorageError as error:
        return {"refused to open" if str(directory) in str(error) else f"refused, but not by name: {error}"}
    found = {await _look_at(store, key, entry) for key, entry in entries.items()}
    if found == {"as it was written"}:
        assert (await store.list("/registry/")).entries == list(entries.values())
    else:
        with pytest.raises(Undecodable):
            await store.list("/registry/")
    await store.close()
    return found


async def _look_at(store: SqliteStore, key: str, entry: Entry) -> str:
    try:
        read = await store.get(key)
    except Undecodable as error:
        return "refused the key" if key in str(error) else f"refused, but not by name: {error}"
    return "as it was written" if read == entry else f"{key} is {read!r:.80}"


async def test_a_damaged_value_is_refused_and_everything_else_is_served(tmp_path: Path) -> None:
    entries = await _filled(tmp_path)
    _flip_inside(tmp_path / "store.db", _value(KEYS[3]))
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    refusal = f"the stored value of {KEYS[3]} is damaged"
    with pytest.raises(Undecodable, match=refusal):
        await store.get(KEYS[3])
    with pytest.raises(Undecodable, match=refusal):
        await store.list("/registry/")
    with pytest.raises(Undecodable, match=refusal):
        await store.list("/registry/", at=entries[KEYS[4]].modified)
    assert (await store.list("/registry/", limit=3)).entries == [entries[key] for key in KEYS[:3]]
    assert (await store.list("/registry/", after=KEYS[3])).entries == [entries[key] for key in KEYS[4:]]
    assert await store.count("/registry/") == len(KEYS)
    with pytest.raises(KeyExists):
        await store.create(KEYS[3], b"{}")
    written = await store.update(KEYS[3], b"new", expected=entries[KEYS[3]].modified)
    assert await store.get(KEYS[3]) == written
    assert len((await store.list("/registry/")).entries) == len(KEYS)
    await store.close()


async def test_a_damaged_value_with_a_time_to_live_still_goes(tmp_path: Path) -> None:
    clock = ManualClock()
    store = await SqliteStore.open(tmp_path, clock=clock, compaction_interval=0)
    await store.create(KEYS[0], _value(KEYS[0]), ttl=5)
    await store.close()
    _flip_inside(tmp_path / "store.db", _value(KEYS[0]))
    store = await SqliteStore.open(tmp_path, clock=clock, compaction_interval=0)
    watch = store.watch("/registry/", after=await store.current_revision())
    await clock.until_asleep(1)
    clock.advance(6)
    assert [event.entry for event in await next_events(watch, 1)] == [None]
    assert await store.get(KEYS[0]) is None
    await store.close()


async def test_a_worker_is_told_of_a_damaged_value(tmp_path: Path) -> None:
    await _filled(tmp_path)
    _flip_inside(tmp_path / "store.db", _value(KEYS[3]))
    store = await RemoteBackend(str(tmp_path)).open()
    with pytest.raises(Undecodable, match=f"the stored value of {KEYS[3]} is damaged"):
        await store.list("/registry/")
    await store.close()


async def test_history_that_is_damaged_while_the_store_is_open_is_refused(tmp_path: Path) -> None:
    """The current state is in memory and stays right; what is read from the file is checked."""
    entries = await _filled(tmp_path)
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    _damage_in_place(tmp_path / "store.db", _value(KEYS[3]))
    assert (await store.list("/registry/")).entries == list(entries.values())
    watch = store.watch("/registry/", after=len(KEYS) + 1)
    with pytest.raises(Undecodable, match=f"the stored value of {KEYS[3]} is damaged"):
        await next_events(watch, len(KEYS))
    changed = await store.update(KEYS[5], b"new", expected=entries[KEYS[5]].modified)
    assert await store.get(KEYS[5]) == changed
    await store.close()


def _damage_in_place(file: Path, text: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(file.read_bytes().rindex(text))
        opened.write(b"\0")


@pytest.mark.parametrize(
    "column", ["key = key || 'x'", "created = 1", "previous = 1", "expires = 5.0", "checksum = NULL"]
)
async def test_a_row_whose_key_cannot_be_trusted_closes_the_store(tmp_path: Path, column: str) -> None:
    await _filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute(f"UPDATE history SET {column} WHERE revision = (SELECT max(revision) - 3 FROM history)")
        connection.commit()
    with pytest.raises(DamagedStore, match=r"store\.db cannot be read: a row is damaged: its checksum does not match"):
        await SqliteStore.open(tmp_path)


async def test_a_flipped_bit_of_the_log_never_changes_a_value(tmp_path: Path) -> None:
    """SQLite takes the log to end before the damage, as after a power cut: later writes are missing, none is wrong."""
    store = await SqliteStore.open(tmp_path / "original", compaction_interval=0)
    entries = {key: await store.create(key, _value(key)) for key in KEYS}
    shutil.copytree(tmp_path / "original", tmp_path / "killed")
    await store.close()
    size, chance = (tmp_path / "killed/store.db-wal").stat().st_size, random.Random(1)
    for _ in range(50):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "killed", tmp_path / "copy")
        _flip(tmp_path / "copy/store.db-wal", chance.randrange(size), chance.randrange(8))
        store = await SqliteStore.open(tmp_path / "copy", compaction_interval=0, fsync=False)
        left = (await store.list("/registry/")).entries
        assert left == list(entries.values())[: len(left)]
        await store.close()


@pytest.mark.parametrize("name", ["store.db", "store.db-wal"])
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
async def test_no_write_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, name: str, replaced: bool) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    entry = await store.create(KEYS[0], b"old")
    (tmp_path / name).rename(tmp_path / "elsewhere")
    if replaced:
        shutil.copy(tmp_path / "elsewhere", tmp_path / name)
    with pytest.raises(
        Unavailable, match=f"{name} was deleted or replaced while it is in use: restart the server"
    ) as failure:
        await store.create(KEYS[1], b"new")
    assert not failure.value.uncertain
    with pytest.raises(Unavailable):
        await store.ping()
    assert (await store.list("/registry/")).entries == [entry]
    (tmp_path / "elsewhere").rename(tmp_path / name)
    assert (await store.create(KEYS[1], b"new")).modified == entry.modified + 1
    await store.close()


async def test_a_store_of_the_first_format_is_upgraded_and_protected(tmp_path: Path) -> None:
    entries = await _filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as connection:
        connection.execute("ALTER TABLE history DROP COLUMN checksum")
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'format'")
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    assert (await store.list("/registry/")).entries == list(entries.values())
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone() == (FORMAT,)
    _flip_inside(tmp_path / "store.db", _value(KEYS[3]))
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    with pytest.raises(Undecodable):
        await store.get(KEYS[3])
    await store.close()
