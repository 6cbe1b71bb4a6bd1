"""Messages of the socket: tuples of plain values, with entries, events and errors as tuples.

    worker → store    (number, operation, *arguments)            unique numbers
    store → worker    (number, None, answer) or (number, error name, arguments)
                      (FEED, revision, events)                   pushed: every change of the store, in order

marshal encodes the messages: it is the fastest encoding, keeps bytes unchanged, and both ends are the same program.
marshal must not decode foreign data, so the socket has no name to connect to.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

from pilothouse.apiserver.storage.errors import (
    Compacted,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
    TooLarge,
    Unavailable,
    Undecodable,
)
from pilothouse.apiserver.storage.interface import Entry, Event, Page

Message: TypeAlias = tuple[Any, ...]
Packed: TypeAlias = tuple[str, bytes, int, int]

FEED = 0
"""Number of pushed messages."""

_LENGTH = struct.Struct("<I")
HEAD = _LENGTH.size
# Newer versions search for repeated objects, at a higher cost than benefit here.
_MARSHAL_VERSION = 2

_ERRORS: dict[str, type[StorageError]] = {
    error.__name__: error
    for error in (
        Compacted,
        FutureRevision,
        KeyExists,
        KeyNotFound,
        RevisionConflict,
        TooLarge,
        Unavailable,
        Undecodable,
    )
}


def frame(messages: list[Message]) -> bytes:
    body = marshal.dumps(messages, _MARSHAL_VERSION)
    return _LENGTH.pack(len(body)) + body


def length_of(head: bytes | bytearray | memoryview) -> int:
    """Return the payload size from a frame head."""
    length: int = _LENGTH.unpack(head)[0]
    return length


def messages_of(body: bytes | bytearray | memoryview) -> list[Message]:
    messages: list[Message] = marshal.loads(body)
    return messages


def pack_entry(entry: Entry | None) -> Packed | None:
    return None if entry is None else (entry.key, entry.value, entry.created, entry.modified)


def unpack_entry(packed: Packed | None) -> Entry | None:
    return None if packed is None else Entry(*packed)


def pack_events(events: Sequence[Event]) -> list[Message]:
    return [(event.revision, event.key, pack_entry(event.entry), pack_entry(event.previous)) for event in events]


def unpack_events(packed: Sequence[Message]) -> tuple[Event, ...]:
    return tuple(
        Event(revision, key, unpack_entry(entry), unpack_entry(previous)) for revision, key, entry, previous in packed
    )


def pack_page(page: Page) -> Message:
    return ([pack_entry(entry) for entry in page.entries], page.revision, page.remaining)


def unpack_page(packed: Message) -> Page:
    entries, revision, remaining = packed
    return Page([Entry(*entry) for entry in entries], revision, remaining)


def pack_error(error: StorageError) -> Message:
    """Return the error's name and constructor arguments."""
    if isinstance(error, Compacted):
        return ("Compacted", (error.requested, error.oldest))
    if isinstance(error, FutureRevision):
        return ("FutureRevision", (error.requested, error.current))
    if isinstance(error, Unavailable):
        return ("Unavailable", (str(error), error.uncertain))
    return (type(error).__name__, (str(error),))


def unpack_error(name: str, arguments: tuple[Any, ...]) -> StorageError:
    if name == "Unavailable":
        return Unavailable(arguments[0], uncertain=arguments[1])
    return _ERRORS.get(name, StorageError)(*arguments)
