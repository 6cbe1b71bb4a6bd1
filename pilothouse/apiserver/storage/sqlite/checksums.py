"""Row checksums. SQLite has none for its pages, so without them a flipped bit on disk would be served.

One integer holds two CRC-32 values: the upper half covers all columns but the value, the lower half the value. A row
with a damaged value is still identified by its key, and only that key is refused. Damage to other columns could concern
any key, so the whole store is refused.
"""

from __future__ import annotations

import sqlite3
from typing import Final
from zlib import crc32

from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Revision

COLUMNS: Final = "revision, key, created, previous, expires, value"
"""Columns of a checksum, in the argument order of `checksum`."""

_LOWER = 0xFFFFFFFF


def checksum(
    revision: int, key: str, created: int, previous: int | None, expires: float | None, value: bytes | None
) -> int:
    """Return a 63-bit checksum: 31 bits for all columns but the value, 32 bits for the value. A value that is not a
    blob, a sign of damage, gets an impossible checksum."""
    if value is not None and not isinstance(value, bytes):
        return -1
    upper = crc32(f"{revision} {created} {previous} {expires} {value is None} {key}".encode())
    return (upper & 0x7FFFFFFF) << 32 | crc32(value or b"")


def is_intact(found: int | None, expected: int) -> bool:
    """Return whether the value is intact. Raises sqlite3.DatabaseError if the rest of the row is damaged."""
    if found == expected:
        return True
    if not isinstance(found, int) or found >> 32 != expected >> 32:
        raise sqlite3.DatabaseError("a row is damaged: its checksum does not match")
    return False


def damaged(key: str, revision: Revision) -> Undecodable:
    return Undecodable(f"the stored value of {key} is damaged: the checksum of revision {revision} does not match")


def add_checksums(connection: sqlite3.Connection) -> None:
    """Compute the checksums of all rows."""
    connection.create_function("checksum_of_row", COLUMNS.count(",") + 1, checksum, deterministic=True)
    connection.execute(f"UPDATE history SET checksum = checksum_of_row({COLUMNS})")
