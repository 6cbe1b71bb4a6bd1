"""Server side of a send-only WebSocket.

Each item of a stream becomes a message, and the end of the stream a close frame. Client messages are read and dropped,
so that pings are answered and a close is detected.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import suppress
from hashlib import sha1
from typing import Final
from urllib.parse import urlsplit

from pilothouse.apiserver.http import Request, Response, Upgrade
from pilothouse.apiserver.serving.upgrade import is_upgrade, raw_connection, until_one_ends
from pilothouse.apiserver.streams import close_stream
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


_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_VERSION = b"13"
_CHUNK = 64 * 1024


def is_websocket_request(request: Request) -> bool:
    return is_upgrade(request) and request.header(b"upgrade").lower() == "websocket"


def subprotocols(request: Request) -> list[str]:
    """Return the client's subprotocols in order of preference."""
    asked = request.header(b"sec-websocket-protocol").split(",")
    return [name.strip() for name in asked if name.strip()]


def refusal(request: Request) -> Response | None:
    """Return the refusal of an invalid handshake or of a missing or invalid Origin, else None."""
    if refused := handshake_refusal(request):
        return refused
    if not _is_uri(request.header(b"origin")):
        return _refused(403)
    return _refused(400) if "," in request.header(b"sec-websocket-protocol") else None


def handshake_refusal(request: Request) -> Response | None:
    """Return the refusal of an invalid handshake in the words of golang.org/x/net/websocket, else None."""
    if not request.header(b"sec-websocket-key"):
        return _refused(400, b"mismatch challenge/response")
    if request.header(b"sec-websocket-version").encode() != _VERSION:
        answer = _refused(400, b"missing or bad WebSocket Version")
        return answer.with_header(b"sec-websocket-version", _VERSION)
    return None


def _refused(status: int, body: bytes = b"") -> Response:
    return Response(status, body, [(b"connection", b"close")])


def _is_uri(origin: str) -> bool:
    """Return whether the Origin is a URI. An empty Origin is invalid: the page could be from anywhere."""
    with suppress(ValueError):
        return " " not in origin and (origin.startswith("/") or bool(urlsplit(origin).scheme))
    return False


def accepted(
    request: Request, opcode: int, messages: AsyncIterator[Sequence[bytes]], *, protocol: str | None = None
) -> Response:
    """Return the response that upgrades, then sends the messages; messages of an item are sent together.

    `protocol`: the negotiated subprotocol; default: the client's own header.
    """
    chosen = request.header(b"sec-websocket-protocol").strip() if protocol is None else protocol
    return switched(request, chosen, _Speaker(opcode, messages).run)


def negotiated_subprotocol(request: Request, known: Container[str]) -> str | None:
    """Return the client's first known subprotocol, "" for a client without subprotocols, or None if all are unknown."""
    return next((name for name in subprotocols(request) or [""] if name in known), None)


def switched(request: Request, protocol: str, upgrade: Upgrade) -> Response:
    """Return the response that upgrades to a WebSocket handled by `upgrade`."""
    key = request.header(b"sec-websocket-key").encode("latin-1")
    headers = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", b64encode(sha1(key + _GUID, usedforsecurity=False).digest())),
    ]
    if protocol:
        headers.append((b"sec-websocket-protocol", protocol.encode("latin-1")))
    return Response(101, headers=headers, upgrade=upgrade)


@dataclass(frozen=True, slots=True)
class _Speaker:
    opcode: int
    messages: AsyncIterator[Sequence[bytes]]

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Run until the messages end or the client disconnects."""
        connection = raw_connection(transport, received)
        try:
            received_frames = _drop_received(connection.reader, connection.writer)
            await until_one_ends(self._speak(connection.writer), received_frames)
        finally:
            connection.writer.write(close_frame(NORMAL))
            connection.writer.close()
            await close_stream(self.messages)

    async def _speak(self, writer: asyncio.StreamWriter) -> None:
        async for several in self.messages:
            writer.writelines([frame(self.opcode, message) for message in several])
            await writer.drain()


async def _drop_received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read and drop frames until the client closes."""
    try:
        while (opcode := await _drop_frame(reader, writer)) != CLOSE:
            if opcode == PING:
                await writer.drain()
    except WebSocketError:
        writer.write(close_frame(PROTOCOL_ERROR))
    except (OSError, EOFError):
        pass


async def _drop_frame(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Read and drop a frame with bounded memory; return its opcode."""
    head = await read_head(reader)
    if head.opcode == PING:
        writer.write(frame(PONG, unmasked(await reader.readexactly(head.length), head.mask)))
        return PING
    length = head.length
    while length and (dropped := await reader.read(min(length, _CHUNK))):
        length -= len(dropped)
    return head.opcode
