"""All watches and logs of a browser tab on one WebSocket: `/console/streams`.

Browsers open at most six HTTP/1.1 connections to a host, for all tabs together; WebSockets do not count. The page sends
JSON, the console answers with JSON (heads and ends) and binary messages (four bytes of stream id, then the body):

    {"open": 7, "path": "/api/v1/pods?watch=1", "accept": "application/json"}  →  {"id": 7, "status": 200}, 7 ‖ bytes …
    {"close": 7}                                                              or  {"id": 7, "end": true, "error": ""}
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any, Final

import orjson

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.upgrade import RawConnection, raw_connection
from pilothouse.apiserver.serving.websocket import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    WebSocketError,
    close_frame,
    frame,
    handshake_refusal,
    read_head,
    switched,
    unmasked,
)
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.console.forwarding import is_forwarded
from pilothouse.machinery.status_error import StatusError

PATH: Final = "/console/streams"
_MAX_STREAMS: Final = 100
_MAX_MESSAGE: Final = 64 << 10
_MAX_ERROR: Final = 64 << 10
_TARGET: Final = re.compile(r"/[!-~]*")
_ID_BYTES: Final = 4


def multiplexed(request: Request, transport: HttpTransport) -> Response:
    """Return the upgrade to a WebSocket that carries GET streams of the cluster."""
    refused = handshake_refusal(request)
    if refused is not None:
        return refused

    async def run(connection: asyncio.Transport, received: bytes) -> None:
        await _Multiplexer(transport, raw_connection(connection, received)).run()

    return switched(request, "", run)


class _Multiplexer:
    """The streams of one WebSocket, by the page's ids. A slow page slows down its own streams."""

    def __init__(self, transport: HttpTransport, connection: RawConnection) -> None:
        self._transport = transport
        self._reader, self._writer = connection.reader, connection.writer
        self._streams: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve the page's messages until the page closes the connection."""
        try:
            while (message := await self._next_message()) is not None:
                self._take(message)
        except (WebSocketError, ValueError, KeyError, TypeError):
            self._writer.write(close_frame(PROTOCOL_ERROR))
        except (OSError, EOFError):
            pass
        finally:
            streams = list(self._streams.values())
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*streams, return_exceptions=True)
            with suppress(OSError):
                self._writer.write(close_frame(NORMAL))
            self._writer.close()

    async def _next_message(self) -> dict[str, Any] | None:
        """Return the next message; None after a close frame."""
        payload = b""
        while True:
            head = await read_head(self._reader)
            if head.length + len(payload) > _MAX_MESSAGE:
                raise WebSocketError
            data = unmasked(await self._reader.readexactly(head.length), head.mask)
            if head.opcode == CLOSE:
                return None
            if head.opcode == PING:
                self._writer.write(frame(PONG, data))
            if head.is_control:
                continue
            payload += data
            if head.final:
                message = orjson.loads(payload)
                if not isinstance(message, dict):
                    raise WebSocketError
                return message

    def _take(self, message: dict[str, Any]) -> None:
        if "close" in message:
            if stream := self._streams.get(message["close"]):
                stream.cancel()
            return
        number, target, accept = message["open"], str(message["path"]), str(message.get("accept", "*/*"))
        if not isinstance(number, int) or not 0 <= number < 1 << 32 or number in self._streams:
            raise WebSocketError
        if len(self._streams) >= _MAX_STREAMS:
            self._send(number, status=429, body="too many streams on one connection")
        elif not _TARGET.fullmatch(target) or not is_forwarded(target.partition("?")[0]):
            self._send(number, status=404, body="the console does not forward this path")
        else:
            stream = asyncio.create_task(self._forward(number, target, accept))
            self._streams[number] = stream
            stream.add_done_callback(lambda _: self._streams.pop(number, None))

    def _send(self, number: int, **fields: object) -> None:
        self._writer.write(frame(TEXT, orjson.dumps({"id": number, **fields})))

    async def _forward(self, number: int, target: str, accept: str) -> None:
        """Send the response of one GET. The error of a broken response is a field of its end."""
        error = ""
        try:
            response = await self._transport.send(HttpRequest("GET", target, {"accept": accept}, b""))
            try:
                await self._copy(number, response)
            finally:
                await response.close()
        except (ConnectionFailed, StatusError) as failed:
            error = str(failed)
        except OSError:
            return
        self._send(number, end=True, error=error)

    async def _copy(self, number: int, response: Any) -> None:
        if response.status != 200:
            body = b""
            async for chunk in response.chunks():
                body = (body + chunk)[:_MAX_ERROR]
            self._send(number, status=response.status, body=body.decode(errors="replace"))
            return
        self._send(number, status=200)
        prefix = number.to_bytes(_ID_BYTES, "big")
        async for chunk in response.chunks():
            self._writer.write(frame(BINARY, prefix + chunk))
            await self._writer.drain()
