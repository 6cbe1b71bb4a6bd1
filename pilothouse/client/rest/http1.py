"""HTTP/1.1 connections of the client: one request at a time, streamed responses, reuse after a complete response.

A response ends where its framing says (RFC 9112): after Content-Length bytes, after the last chunk, or with the
connection. A connection that breaks off earlier raises ConnectionFailed in the reader, never a truncated body.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.machinery.status_error import PilothouseError

MAX_HEAD: Final = 1 << 20
MAX_UNREAD: Final = 1 << 19
"""Bytes of an unread body after which the connection stops reading."""
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_HEXADECIMAL: Final = b"0123456789abcdefABCDEF"
_GZIP: Final = 16 + zlib.MAX_WBITS
_UNTIL_CLOSE: Final = -1


class MalformedResponse(PilothouseError):
    """The server sent bytes that are no HTTP/1.1 response."""


class ResponseParser:
    """Incremental parser of one response. `feed` returns the body bytes that arrived, decompressed."""

    __slots__ = (
        *("_buffer", "_chunked", "_in_trailers", "_inflate", "_left", "_method"),
        *("headers", "is_complete", "is_reusable", "status"),
    )

    def __init__(self, method: str) -> None:
        self._method = method
        self._buffer = b""  # incomplete head, or incomplete line between chunks
        self._chunked, self._in_trailers = False, False
        self._left = 0  # bytes until the end of the body or chunk; -1 = until the connection closes
        self._inflate: Any = None
        self.status = 0
        """0 until the head is complete."""
        self.headers: dict[str, str] = {}
        self.is_complete = False
        self.is_reusable = True
        """Whether the connection can send another request after this response."""

    def feed(self, data: bytes) -> bytes:
        """Raises MalformedResponse."""
        if not self.status:
            data = self._read_head(self._buffer + data if self._buffer else data)
            if not self.status or self.is_complete:
                return b""
        body = self._read_chunks(data) if self._chunked else self._read_length(data)
        return body if self._inflate is None else self._decompress(body)

    def _decompress(self, data: bytes) -> bytes:
        """A gzip body has several members if the server ends one with each flush, as kube-apiserver does in a watch."""
        parts: list[bytes] = []
        try:
            while data:
                if self._inflate.eof:
                    self._inflate = zlib.decompressobj(_GZIP)
                parts.append(self._inflate.decompress(data))
                data = self._inflate.unused_data
            if self.is_complete:
                parts.append(self._inflate.flush())
        except zlib.error as error:
            raise MalformedResponse(f"cannot decompress the body: {error}") from None
        return b"".join(parts)

    def end(self) -> None:
        """The connection has ended. Raises MalformedResponse if the response is incomplete."""
        if self.status and not self._chunked and self._left == _UNTIL_CLOSE:
            self.is_complete, self.is_reusable = True, False
        if not self.is_complete:
            raise MalformedResponse("the server closed the connection before the response was complete")

    def _read_head(self, data: bytes) -> bytes:
        """Read the head; return the bytes after the head. Interim responses are skipped."""
        while True:
            end = data.find(_HEAD_END)
            if end < 0:
                if len(data) > MAX_HEAD:
                    raise MalformedResponse(f"the head of the response exceeds {MAX_HEAD} bytes")
                self._buffer = data
                return b""
            line, *fields = data[:end].decode("latin-1").split("\r\n")
            data = data[end + len(_HEAD_END) :]
            protocol, _, rest = line.partition(" ")
            code = rest[:3]
            if not protocol.startswith("HTTP/1.") or not (code.isdecimal() and len(code) == 3 and code >= "100"):
                raise MalformedResponse(f"not an HTTP response: {line[:80]!r}")
            if code[0] != "1" or code == "101":
                break
        self._buffer = b""
        headers = self.headers
        for field in fields:
            name, colon, value = field.partition(":")
            if not colon:
                raise MalformedResponse(f"not a header: {field[:80]!r}")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self.status = int(code)
        connection = headers.get("connection", "").lower()
        self.is_reusable = "close" not in connection and (protocol != "HTTP/1.0" or "keep-alive" in connection)
        self._frame(headers)
        return data

    def _frame(self, headers: dict[str, str]) -> None:
        """Find the end of the body, as RFC 9112 section 6.3."""
        if self._method == "HEAD" or self.status in (204, 304):
            self.is_complete = True
            return
        if self.status == 101:
            raise MalformedResponse("the server switched protocols without a request to do so")
        if headers.get("content-encoding", "").lower() in ("gzip", "x-gzip"):
            self._inflate = zlib.decompressobj(_GZIP)
        if coding := headers.get("transfer-encoding", "").lower():
            if coding != "chunked":
                raise MalformedResponse(f"unknown transfer coding {coding[:80]!r}")
            self._chunked = True
            self.is_reusable = self.is_reusable and "content-length" not in headers
        elif length := headers.get("content-length", ""):
            if not (length.isascii() and length.isdecimal()):
                raise MalformedResponse(f"invalid content-length {length[:80]!r}")
            self._left = int(length)
            self.is_complete = self._left == 0
        else:
            self._left = _UNTIL_CLOSE

    def _read_length(self, data: bytes) -> bytes:
        if self._left == _UNTIL_CLOSE:
            return data
        if len(data) > self._left:
            data, self.is_reusable = data[: self._left], False
        self._left -= len(data)
        self.is_complete = self._left == 0
        return data

    def _read_chunks(self, data: bytes) -> bytes:
        """`_left` counts the rest of a chunk with its line end; the buffer has an incomplete size or trailer."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        found, at = [], 0
        while at < len(data) and not self.is_complete:
            if self._left > 2:
                piece = data[at : at + self._left - 2]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
            elif self._left:
                if data[at] != _LINE_END[-self._left]:
                    raise MalformedResponse("a chunk is longer than its size")
                at += 1
                self._left -= 1
            else:
                end = data.find(_LINE_END, at)
                if end < 0:
                    self._buffer = data[at:]
                    if len(self._buffer) > MAX_HEAD:
                        raise MalformedResponse("the size of a chunk is too long")
                    break
                self._read_line(data[at:end])
                at = end + 2
        if self.is_complete and at < len(data):
            self.is_reusable = False
        return found[0] if len(found) == 1 else b"".join(found)

    def _read_line(self, line: bytes) -> None:
        """Read the size of a chunk, or a trailer after the last chunk."""
        if self._in_trailers:
            self.is_complete = not line
            return
        digits = line.partition(b";")[0].strip(b" \t")
        if not digits or digits.strip(_HEXADECIMAL):
            raise MalformedResponse(f"invalid size of a chunk: {line[:80]!r}")
        size = int(digits, 16)
        self._in_trailers = size == 0
        self._left = size + 2 if size else 0


class Connection(asyncio.Protocol):
    """One connection. `send` is called for one request at a time; `on_idle` is called when another can follow."""

    def __init__(self, on_idle: Callable[[Connection], None], on_lost: Callable[[Connection], None]) -> None:
        self._on_idle, self._on_lost = on_idle, on_lost
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._paused = False
        self.idle_since = 0.0

    @property
    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    async def send(self, method: str, message: bytes, timeout: float | None) -> Response:
        """Send a request; return when the head of the response has arrived. Raises ConnectionFailed."""
        assert self._transport is not None
        response = self._response = Response(self, method, timeout)
        self._transport.write(message)
        try:
            await response.started()
        except BaseException:
            self.close()
            raise
        return response

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:  # nothing was requested
            self.close()
            return
        if not response.feed(data):
            return
        self._response = None
        self.resume()
        if response.parser.is_reusable and not self.is_closing:
            self._on_idle(self)
        else:
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._on_lost(self)
        if self._response is not None:
            self._response.disconnected(error)
            self._response = None


class Response:
    """Response whose head has arrived (`pilothouse.client.rest.transport.HttpResponse`)."""

    def __init__(self, connection: Connection, method: str, timeout: float | None) -> None:
        self._connection = connection
        self.parser = ResponseParser(method)
        self._parts: list[bytes] = []  # arrived and not read
        self._size = 0  # of the parts
        self._error: ConnectionFailed | None = None
        self._waiter: asyncio.Future[None] | None = None
        loop = self._loop = asyncio.get_running_loop()
        self._timer = None if timeout is None else loop.call_later(timeout, self._time_out, timeout)

    @property
    def status(self) -> int:
        return self.parser.status

    @property
    def headers(self) -> dict[str, str]:
        return self.parser.headers

    async def started(self) -> None:
        """Return when the head has arrived. Raises ConnectionFailed."""
        while not self.parser.status:
            await self._wait()

    async def read(self) -> bytes:
        if not self.parser.is_complete:
            parts = [part async for part in self.chunks()]
            return b"".join(parts)
        return self._take()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            if self._parts:
                yield self._take()
            elif self.parser.is_complete:
                return
            else:
                await self._wait()

    async def close(self) -> None:
        self._stop_timer()
        if not self.parser.is_complete:
            self._fail(ConnectionFailed("the response was closed"))
            self._connection.close()

    def feed(self, data: bytes) -> bool:
        """Add received bytes; report whether the response is complete."""
        try:
            body = self.parser.feed(data)
        except MalformedResponse as error:
            self._fail(ConnectionFailed(str(error)))
            self._connection.close()
            return False
        if body:
            self._parts.append(body)
            self._size += len(body)
            if self._size > MAX_UNREAD and not self.parser.is_complete:
                self._connection.pause()
        if self.parser.is_complete:
            self._stop_timer()
        self._wake()
        return self.parser.is_complete

    def disconnected(self, error: Exception | None) -> None:
        try:
            self.parser.end()
            self._stop_timer()
            self._wake()
        except MalformedResponse as incomplete:
            self._fail(ConnectionFailed(str(error or incomplete)))

    def _take(self) -> bytes:
        parts, self._parts, self._size = self._parts, [], 0
        if not self.parser.is_complete:  # else the connection may serve another request
            self._connection.resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        await self._waiter
        if self._error is not None and not self._parts:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: ConnectionFailed) -> None:
        self._stop_timer()
        self._error = self._error or error
        self._wake()

    def _time_out(self, seconds: float) -> None:
        self._fail(RequestTimedOut(f"no complete response within {seconds:g} s"))
        self._connection.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
