"""A process to be killed: many writers on one store, each saying what it is about to write and what returned.

    python crash_writer.py BACKEND LOCATION [compact]

Each line is one JSON object. Every writer rewrites a key of its own: create, some updates, delete, and again.
With `compact` the store is also compacted all the time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from itertools import count
from typing import Any

from storage_backends import BACKENDS

from pilothouse.apiserver.storage.interface import Entry, Store

WRITERS = 16
UPDATES = 5


def value_of(key: str, number: int) -> bytes:
    """About a kilobyte that can be told from any other, and from a part of itself."""
    return f"{key}#{number};".encode() * 60 + b"end"


def _say(**fields: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(fields).encode() + b"\n")


async def _do(operation: str, key: str, number: int, work: Coroutine[Any, Any, Entry]) -> Entry:
    _say(try_=operation, key=key, number=number)
    entry = await work
    _say(did=operation, key=key, number=number, revision=entry.modified)
    return entry


async def _write(store: Store, key: str) -> None:
    numbers = count()
    while True:
        number = next(numbers)
        entry = await _do("create", key, number, store.create(key, value_of(key, number)))
        for _ in range(UPDATES):
            number = next(numbers)
            update = store.update(key, value_of(key, number), expected=entry.modified)
            entry = await _do("update", key, number, update)
        await _do("delete", key, next(numbers), store.delete(key, expected=entry.modified))


async def _compact(store: Store) -> None:
    while True:
        await store.compact(await store.current_revision())
        await asyncio.sleep(0)  # neither waits where nothing was written since


async def main(backend: str, location: str, *options: str) -> None:
    store = await BACKENDS[backend](location).open()
    writers = [_write(store, f"/registry/crash/{i}") for i in range(WRITERS)]
    compactors = [_compact(store)] if "compact" in options else []
    await asyncio.gather(*writers, *compactors)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
