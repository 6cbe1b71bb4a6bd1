"""The server's end of a WebSocket on which only the server speaks.

The client sees one message for each piece of a stream, and a close frame when the stream ends. What the client sends
is read and dropped, so that its pings are answered and its close is noticed.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from hashlib import sha1
from urllib.parse import urlsplit

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.upgrade import is_upgrade, raw_connection, until_one_ends
from pilothouse.machinery.dataclass import dataclass

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_VERSION = b"13"
TEXT, BINARY, _CLOSE, _PING, _PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_FINAL, _MASKED = 0x80, 0x80
_SHORT, _SIXTEEN_BITS = 125, 126
_NORMAL, _PROTOCOL_ERROR = 1000, 1002
_CHUNK = 64 * 1024
_CONTROL_PAYLOAD = 125


class _NotMasked(Exception):
    """The client broke the rule that hides what it sends from proxies."""


def is_websocket_request(request: Request) -> bool:
    return is_upgrade(request) and request.header(b"upgrade").lower() == "websocket"


def refusal(request: Request) -> Response | None:
    """Return the answer to a handshake that is none, in the words of golang.org/x/net/websocket."""
    if not request.header(b"sec-websocket-key"):
        return _refused(400, b"mismatch challenge/response")
    if request.header(b"sec-websocket-version").encode() != _VERSION:
        answer = _refused(400, b"missing or bad WebSocket Version")
        return answer.with_header(b"sec-websocket-version", _VERSION)
    if not _is_uri(request.header(b"origin")):
        return _refused(403)
    return _refused(400) if "," in request.header(b"sec-websocket-protocol") else None


def _refused(status: int, body: bytes = b"") -> Response:
    return Response(status, body, [(b"connection", b"close")])


def _is_uri(origin: str) -> bool:
    """Browsers say where a page came from; what says nothing is none, and could be anybody's page."""
    with suppress(ValueError):
        return " " not in origin and (origin.startswith("/") or bool(urlsplit(origin).scheme))
    return False


def accepted(request: Request, opcode: int, messages: AsyncIterator[Sequence[bytes]]) -> Response:
    """Return the answer after which the messages are sent, those of one item at once."""
    key = request.header(b"sec-websocket-key").encode("latin-1")
    headers = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", b64encode(sha1(key + _GUID, usedforsecurity=False).digest())),
    ]
    if protocol := request.header(b"sec-websocket-protocol").strip():
        headers.append((b"sec-websocket-protocol", protocol.encode("latin-1")))
    return Response(101, headers=headers, upgrade=_Speaker(opcode, messages).run)


@dataclass(frozen=True, slots=True)
class _Speaker:
    opcode: int
    messages: AsyncIterator[Sequence[bytes]]

    async def run(self, transport: asyncio.Transport, received: bytes) -> None:
        """Ends with the messages, or when the client closes or goes."""
        connection = raw_connection(transport, received)
        try:
            received_frames = _drop_received(connection.reader, connection.writer)
            await until_one_ends(self._speak(connection.writer), received_frames)
        finally:
            connection.writer.write(_close_frame(_NORMAL))
            connection.writer.close()

    async def _speak(self, writer: asyncio.StreamWriter) -> None:
        async for several in self.messages:
            writer.writelines([frame(self.opcode, message) for message in several])
            await writer.drain()


async def _drop_received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns when the client has closed."""
    try:
        while (opcode := await _drop_frame(reader, writer)) != _CLOSE:
            if opcode == _PING:
                await writer.drain()
    except _NotMasked:
        writer.write(_close_frame(_PROTOCOL_ERROR))
    except (OSError, EOFError):
        pass


async def _drop_frame(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Return the frame's opcode. However long it says it is, little of it is held."""
    first, second = await reader.readexactly(2)
    opcode, length = first & 0x0F, second & 0x7F
    if length > _SHORT:
        length = int.from_bytes(await reader.readexactly(2 if length == _SIXTEEN_BITS else 8), "big")
    if not second & _MASKED:
        raise _NotMasked
    mask = await reader.readexactly(4)
    if opcode == _PING:
        masked = await reader.readexactly(min(length, _CONTROL_PAYLOAD))
        length -= len(masked)
        writer.write(frame(_PONG, bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))))
    while length and (dropped := await reader.read(min(length, _CHUNK))):
        length -= len(dropped)
    return opcode


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a message that is one frame."""
    size = len(payload)
    if size <= _SHORT:
        head = bytes((_FINAL | opcode, size))
    elif size < 1 << 16:
        head = bytes((_FINAL | opcode, _SIXTEEN_BITS)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | opcode, _SIXTEEN_BITS + 1)) + size.to_bytes(8, "big")
    return head + payload


def _close_frame(status: int) -> bytes:
    return frame(_CLOSE, status.to_bytes(2, "big"))
