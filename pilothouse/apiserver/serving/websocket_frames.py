"""WebSocket frames, encoded and decoded for the server side."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.machinery.dataclass import dataclass

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, PROTOCOL_ERROR = 1000, 1002
CONTROL_PAYLOAD: Final = 125
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_RESERVED: Final = 0x70
_CONTROL: Final = 0x8
_SHORT: Final = 125
_SIXTEEN_BITS: Final = 126


class WebSocketError(Exception):
    """A protocol violation of the client, such as an unmasked frame."""


@dataclass(frozen=True, slots=True)
class FrameHead:
    opcode: int
    final: bool
    length: int
    mask: bytes

    @property
    def is_control(self) -> bool:
        return bool(self.opcode & _CONTROL)


async def read_head(reader: asyncio.StreamReader) -> FrameHead:
    """Read a frame header. Raises WebSocketError, or EOFError at the end."""
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length > _SHORT:
        length = int.from_bytes(await reader.readexactly(2 if length == _SIXTEEN_BITS else 8), "big")
    if first & _RESERVED or not second & _MASKED:
        raise WebSocketError
    head = FrameHead(first & 0x0F, bool(first & _FINAL), length, await reader.readexactly(4))
    if head.is_control and (length > CONTROL_PAYLOAD or not head.final):
        raise WebSocketError
    return head


def unmasked(data: bytes, mask: bytes, place: int = 0) -> bytes:
    """Unmask bytes at offset `place` of their frame."""
    size = len(data)
    turned = mask[place % 4 :] + mask[: place % 4]
    key = (turned * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def frame(opcode: int, payload: bytes) -> bytes:
    """Encode a message as a single frame."""
    size = len(payload)
    if size <= _SHORT:
        head = bytes((_FINAL | opcode, size))
    elif size < 1 << 16:
        head = bytes((_FINAL | opcode, _SIXTEEN_BITS)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | opcode, _SIXTEEN_BITS + 1)) + size.to_bytes(8, "big")
    return head + payload


def close_frame(status: int) -> bytes:
    return frame(CLOSE, status.to_bytes(2, "big"))
