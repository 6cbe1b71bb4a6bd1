"""Bidirectional WebSockets, and the channels of remote command sessions.

Messages are received in pieces and never buffered whole. Each message of a session starts with its channel number.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.serving.upgrade import RawConnection
from pilothouse.apiserver.serving.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    NORMAL,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    FrameHead,
    WebSocketError,
    close_frame,
    frame,
    read_head,
    unmasked,
)
from pilothouse.machinery.dataclass import dataclass

IDLE_SECONDS: Final = 4 * 60 * 60.0
_PIECE: Final = 64 * 1024
_LEAVE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a message: a whole frame, or a part of a long frame."""

    data: bytes
    begins: bool
    ends: bool


class DuplexWebSocket:
    def __init__(self, connection: RawConnection) -> None:
        self._reader, self._writer = connection.reader, connection.writer
        self._head: FrameHead | None = None  # of the partially read frame
        self._place = 0
        self._begins = True

    async def receive(self) -> Piece | None:
        """Return the next piece, or None after a close, a disconnect or an idle timeout."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                head = self._head or await self._next_head()
                return await self._piece(head) if head is not None else None
        except WebSocketError:
            self._writer.write(close_frame(PROTOCOL_ERROR))
        except (OSError, EOFError):
            pass
        return None

    async def _next_head(self) -> FrameHead | None:
        """Return the head of the next data frame, or None after a close. Pings are answered."""
        while (head := await read_head(self._reader)).opcode != CLOSE:
            if not head.is_control:
                if (head.opcode == CONTINUATION) == self._begins:
                    raise WebSocketError
                self._place = 0
                return head
            payload = await self._reader.readexactly(head.length)
            if head.opcode == PING:
                await self._write(frame(PONG, unmasked(payload, head.mask)))
        return None

    async def _piece(self, head: FrameHead) -> Piece:
        masked = await self._reader.readexactly(min(head.length - self._place, _PIECE))
        data = unmasked(masked, head.mask, self._place)
        self._place += len(data)
        is_whole = self._place == head.length
        piece = Piece(data, self._begins, is_whole and head.final)
        self._head, self._begins = (None if is_whole else head), piece.ends
        return piece

    async def send(self, opcode: int, message: bytes) -> None:
        """Send a message, and wait for slow clients. Raises ConnectionError after a disconnect."""
        await self._write(frame(opcode, message))

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Send a close frame. Earlier messages are still delivered to a client that reads promptly."""
        with suppress(ConnectionError):
            self._writer.write(close_frame(NORMAL))
        self._writer.close()
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._writer.transport.abort)


STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
V5: Final = "v5.channel.k8s.io"
"""The only version in which clients can close a channel."""
V4: Final = "v4.channel.k8s.io"
V4_BASE64: Final = "v4.base64.channel.k8s.io"
V1: Final = "channel.k8s.io"
V1_BASE64: Final = "base64.channel.k8s.io"
_CLOSE_SIGNAL: Final = 255


@dataclass(frozen=True, slots=True)
class Received:
    channel: int
    data: bytes | None
    """None if the client closed the channel."""


class Channels:
    def __init__(self, socket: DuplexWebSocket, protocol: str) -> None:
        self._socket = socket
        self._is_base64 = protocol in (V4_BASE64, V1_BASE64)
        self._can_close = protocol == V5
        self._channel = 0
        self._rest = b""  # incomplete base64 group

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a channel. Raises ConnectionError after a disconnect."""
        if self._is_base64:
            await self._socket.send(TEXT, chr(ord("0") + channel).encode() + b64encode(data))
        else:
            await self._socket.send(BINARY, bytes((channel,)) + data)

    async def receive(self) -> Received | None:
        """Return the next message, or None after a disconnect or an invalid message."""
        while (piece := await self._socket.receive()) is not None:
            if piece.begins and self._can_close and piece.data[:1] == bytes((_CLOSE_SIGNAL,)):
                is_right = len(piece.data) == 2 and piece.ends
                return Received(piece.data[1], None) if is_right else None
            if piece.data:
                return self._received(piece)
        return None

    def _received(self, piece: Piece) -> Received | None:
        data = piece.data
        if piece.begins:
            self._channel, data, self._rest = data[0], data[1:], b""
        if not self._is_base64:
            return Received(self._channel, data)
        data = self._rest + data
        whole = len(data) - len(data) % 4
        self._rest = data[whole:]
        try:
            return Received(self._channel - ord("0"), b64decode(data[:whole], validate=True))
        except NotBase64:
            return None

    def close(self) -> None:
        self._socket.close()
