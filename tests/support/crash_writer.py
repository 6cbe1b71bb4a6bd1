"""A process to be killed: many writers on one store, each saying what it is about to write and what returned.

    python crash_writer.py BACKEND LOCATION [compact] [rounds=N] [writes=N] [checkpoint=PAGES]

Each line is one JSON object. Every writer rewrites a key of its own: create, some updates, delete, and again.
With `compact` the store is also compacted all the time. With `writes` each writer stops after that many, the store is
closed, and the next of `rounds` opens it again and writes to other keys. `checkpoint` bounds the embedded store's log,
so that little has to be written until pages go from there into the database.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Coroutine
from functools import partial
from itertools import count
from typing import Any

from storage_backends import BACKENDS

from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

WRITERS = 16
UPDATES = 5


def value_of(key: str, number: int) -> bytes:
    """About a kilobyte that can be told from any other, and from a part of itself; every fourth fills some pages."""
    return f"{key}#{number};".encode() * (400 if number % 4 == 3 else 60) + b"end"


def _say(**fields: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(fields).encode() + b"\n")


async def _do(operation: str, key: str, number: int, work: Coroutine[Any, Any, Entry]) -> Entry:
    _say(try_=operation, key=key, number=number)
    entry = await work
    _say(did=operation, key=key, number=number, revision=entry.modified)
    return entry


async def _write(store: Store, key: str, writes: int | None) -> None:
    entry: Entry | None = None
    for number in count() if writes is None else range(writes):
        turn = number % (UPDATES + 2)
        if entry is None:
            entry = await _do("create", key, number, store.create(key, value_of(key, number)))
        elif turn <= UPDATES:
            update = store.update(key, value_of(key, number), expected=entry.modified)
            entry = await _do("update", key, number, update)
        else:
            await _do("delete", key, number, store.delete(key, expected=entry.modified))
            entry = None


async def _compact(store: Store) -> None:
    while True:
        await store.compact(await store.current_revision())
        await asyncio.sleep(0)  # neither waits where nothing was written since


def _checkpoint_after(connection: sqlite3.Connection, *, pages: int) -> None:
    connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")


async def main(backend: str, location: str, *options: str) -> None:
    numbers = {name: int(number) for name, _, number in (option.partition("=") for option in options) if number}
    place = BACKENDS[backend](location)
    for number in range(numbers.get("rounds", 1)):
        store = await place.open()
        if pages := numbers.get("checkpoint"):
            assert isinstance(store, SqliteStore)
            await store._writer.call(partial(_checkpoint_after, pages=pages))
        writes = (_write(store, f"/registry/crash/{number}/{i}", numbers.get("writes")) for i in range(WRITERS))
        compactor = asyncio.create_task(_compact(store)) if "compact" in options else None
        await asyncio.gather(*writes)
        if compactor is not None:
            compactor.cancel()
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
