"""The socket between a worker and the store process: messages as tuples of plain values.

    worker → store    (number, operation, *arguments)            unique numbers
    store → worker    (number, None, answer) or (number, error name, arguments)
                      (FEED, revision, events)                   pushed: every change of the store, in order

marshal encodes the messages: it is the fastest encoding, keeps bytes unchanged, and both ends are the same program.
marshal must not decode foreign data, so the socket has no name to connect to.
"""

from __future__ import annotations

import asyncio
import marshal
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

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


_READ_AHEAD = 1 << 20
"""Send buffer size above which reading pauses."""


class Channel(asyncio.Protocol):
    """`received` gets every message in order; `lost` is called once at the end."""

    def __init__(self, received: Callable[[Message], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[Message] = []
        self._writable = asyncio.Event()
        self._writable.set()

    @classmethod
    async def over(
        cls, sock: socket.socket, *, received: Callable[[Message], None], lost: Callable[[], None]
    ) -> Channel:
        """Open a channel, which takes ownership of the socket."""
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_connection(lambda: cls(received, lost), sock=sock)
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_READ_AHEAD)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._lost()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def send(self, message: Message) -> None:
        """Send a message. Raises Unavailable."""
        if self._transport is None:
            raise Unavailable("the store's process is gone")
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(message)

    async def drained(self) -> None:
        """Wait until the peer accepts more data or is gone."""
        await self._writable.wait()

    def close(self) -> None:
        """Flush, then close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= HEAD:
            end = HEAD + length_of(self._buffer[:HEAD])
            if len(self._buffer) < end:
                return
            messages = messages_of(self._buffer[HEAD:end])
            del self._buffer[:end]
            for message in messages:
                self._received(message)

    def pause_writing(self) -> None:
        """Pause reading too: a peer that does not read must not cause further answers."""
        self._writable.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._transport is not None:
            self._transport.resume_reading()

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and self._transport is not None:
            self._transport.write(frame(outgoing))
