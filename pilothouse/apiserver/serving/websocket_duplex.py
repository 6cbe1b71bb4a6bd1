"""The server's end of a WebSocket on which both sides speak. Messages are received in pieces: none is held whole."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.serving.upgrade import RawConnection
from pilothouse.apiserver.serving.websocket_frames import (
    CLOSE,
    CONTINUATION,
    NORMAL,
    PING,
    PONG,
    PROTOCOL_ERROR,
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
    """A part of a message: a whole frame, unless that is long."""

    data: bytes
    begins: bool
    ends: bool


class DuplexWebSocket:
    def __init__(self, connection: RawConnection) -> None:
        self._reader, self._writer = connection.reader, connection.writer
        self._head: FrameHead | None = None  # of the frame that was not read to its end
        self._place = 0
        self._begins = True

    async def receive(self) -> Piece | None:
        """Return the next piece of a message; None once the client has closed, is gone, or was silent for long."""
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
        """Return the head of the next frame with data; None when the client closes. Pings are answered."""
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
        """Returns when the client takes more. Raises ConnectionError when it has gone."""
        await self._write(frame(opcode, message))

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Takes leave. What was sent before still arrives, if the client reads it soon."""
        with suppress(ConnectionError):
            self._writer.write(close_frame(NORMAL))
        self._writer.close()
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._writer.transport.abort)
