"""Who may open a data directory, and what is in it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pilothouse.apiserver.storage.backup.sqlite import SqliteSource, SqliteTarget
from pilothouse.apiserver.storage.sqlite.schema import DamagedStore, DirectoryInUse, UnsupportedFormat, connect
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

_HOLDER = """
import asyncio, pathlib, sys
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

async def hold():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))
    await store.create("/registry/a", b"theirs")
    print("open", flush=True)
    await asyncio.Event().wait()

asyncio.run(hold())
"""


async def _hold(directory: Path) -> asyncio.subprocess.Process:
    """Another process that has the directory open."""
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HOLDER, str(directory), stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"open\n"
    return holder


async def test_a_directory_that_another_process_has_open_is_refused_until_that_one_is_killed(tmp_path: Path) -> None:
    holder = await _hold(tmp_path)
    with pytest.raises(DirectoryInUse, match=rf"{tmp_path} is in use by process {holder.pid}$"):
        await SqliteStore.open(tmp_path)
    holder.send_signal(signal.SIGKILL)
    await holder.wait()
    store = await SqliteStore.open(tmp_path)
    assert await store.count("/registry/") == 1
    await store.close()


async def test_a_directory_is_refused_to_a_second_store_of_the_same_process(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    with pytest.raises(DirectoryInUse, match=f"process {os.getpid()}$"):
        await SqliteStore.open(tmp_path)
    await store.close()
    await (await SqliteStore.open(tmp_path)).close()


async def test_nobody_else_may_read_what_is_stored(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "store"
    store = await SqliteStore.open(directory)
    await store.create("/registry/secrets/a", b"hush")
    assert directory.stat().st_mode & 0o077 == 0
    assert {file.name for file in directory.iterdir() if file.stat().st_mode & 0o077} == set()
    await store.close()


async def test_a_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path)).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE meta SET value = 3 WHERE name = 'format'")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    newer = (tmp_path / "store.db").read_bytes()
    for _ in range(2):  # the refusal leaves the directory unlocked
        with pytest.raises(UnsupportedFormat, match="has format 3, this version reads formats up to 2"):
            await SqliteStore.open(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == newer


async def test_a_file_that_is_not_a_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database " * 1000)
    for _ in range(2):
        with pytest.raises(DamagedStore, match=r"store\.db cannot be read: file is not a database"):
            await SqliteStore.open(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == b"no database " * 1000


def test_commits_wait_for_the_disk(tmp_path: Path) -> None:
    connection = connect(tmp_path / "store.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.close()


@pytest.mark.parametrize(("fsync", "synchronous"), [(True, 2), (False, 0)])
def test_a_write_does_not_wait_for_the_disk_only_where_that_is_asked_for(
    tmp_path: Path, fsync: bool, synchronous: int
) -> None:
    connection = connect(tmp_path / "store.db", fsync=fsync)
    assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    connection.close()


async def test_what_was_not_synced_is_there_for_the_next_process(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, fsync=False)
    created = await store.create("/registry/a", b"{}")
    await store.close()
    again = await SqliteStore.open(tmp_path)
    assert await again.get("/registry/a") == created
    await again.close()


class _NotedConnection(sqlite3.Connection):
    """Notes how durable each statement that writes is."""

    noted: ClassVar[list[tuple[int, ...]]] = []

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql.split()[0] in ("INSERT", "UPDATE", "DELETE", "COMMIT"):
            pragmas = ("synchronous", "fullfsync", "checkpoint_fullfsync")
            self.noted.append(
                tuple(super(_NotedConnection, self).execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
            )
        return super().execute(sql, *parameters)


@pytest.mark.parametrize(("fsync", "durable"), [(True, (2, 1, 1)), (False, (0, 0, 0))])
async def test_every_connection_that_writes_flushes_the_drive_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool, durable: tuple[int, ...]
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_NotedConnection))
    noted: list[tuple[int, ...]] = []
    monkeypatch.setattr(_NotedConnection, "noted", noted)
    store = await SqliteStore.open(tmp_path / "store", fsync=fsync)
    await asyncio.gather(*(store.create(f"/registry/{number}", b"{}") for number in range(100)))
    await store.close()
    assert set(noted) == {durable}
    noted.clear()
    with SqliteSource.open(tmp_path / "store") as source:
        await SqliteTarget(tmp_path / "restored").fill(source, at_least=0)
    assert set(noted) == {(2, 1, 1)}
