"""Checksums of rows. SQLite has none for its pages, so that without them a bit that flips on disk would be served.

One number holds two CRC-32: the upper half covers all columns but the value, the lower half the value. A row whose
value alone is damaged is still known by its key, and only that key is refused. A row whose other columns are damaged
may stand for any key, and with it no key of the store can be trusted.
"""

from __future__ import annotations

import sqlite3
from typing import Final
from zlib import crc32

from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Revision

COLUMNS: Final = "revision, key, created, previous, expires, value"
"""What a checksum is made of, in the order of the arguments of `checksum`."""

_LOWER = 0xFFFFFFFF


def checksum(
    revision: int, key: str, created: int, previous: int | None, expires: float | None, value: bytes | None
) -> int:
    """Return a number that SQLite can hold: 31 bits of all columns but the value, and 32 bits of the value. A value
    that is no blob, which only damage makes of one, has a checksum that no row has."""
    if value is not None and not isinstance(value, bytes):
        return -1
    upper = crc32(f"{revision} {created} {previous} {expires} {value is None} {key}".encode())
    return (upper & 0x7FFFFFFF) << 32 | crc32(value or b"")


def is_intact(found: int | None, expected: int) -> bool:
    """Whether the value is as it was written. Raises sqlite3.DatabaseError when the rest of the row is not."""
    if found == expected:
        return True
    if not isinstance(found, int) or found >> 32 != expected >> 32:
        raise sqlite3.DatabaseError("a row is damaged: its checksum does not match")
    return False


def damaged(key: str, revision: Revision) -> Undecodable:
    return Undecodable(f"the stored value of {key} is damaged: the checksum of revision {revision} does not match")


def add_checksums(connection: sqlite3.Connection) -> None:
    """Give every row the checksum of what it holds now."""
    connection.create_function("checksum_of_row", COLUMNS.count(",") + 1, checksum, deterministic=True)
    connection.execute(f"UPDATE history SET checksum = checksum_of_row({COLUMNS})")
