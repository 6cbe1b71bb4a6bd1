"""Passing an upgrade on: once both sides have agreed, bytes flow between them until one closes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pilothouse.apiserver.head_fields import InvalidHead, check_request
from pilothouse.apiserver.http import Headers, Request, Response
from pilothouse.apiserver.outbound.failures import DialFailed
from pilothouse.apiserver.outbound.reaching import reach
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import StatusError

_CHUNK = 64 * 1024
_MAX_HEAD = 64 * 1024
_SWITCHING = 101
_NOT_FORWARDED = frozenset({b"authorization", b"content-length", b"transfer-encoding"})
"""The client's credentials are for this server; the rest describes the hop that the request came by."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Headers


async def forward_upgrade(request: Request, target: Target, headers: Headers | None = None) -> Response:
    """Sends the request's headers, or those given. Raises StatusError when nothing answers, or nothing can be asked.
    A refusal of the other side is answered as it came."""
    head = _head(request, target, _forwarded(request) if headers is None else headers)
    reader, writer = await _dial(target)
    try:
        writer.write(head)
        async with asyncio.timeout(target.timeout):
            await writer.drain()
            answer = await _read_answer(reader)
    except TimeoutError:
        writer.close()
        raise StatusError("error sending request: timeout awaiting response headers") from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise StatusError(f"error sending request: {error or 'EOF'}") from None
    except BaseException:
        writer.close()
        raise
    if answer.status == _SWITCHING:
        return Response(_SWITCHING, headers=answer.headers, upgrade=_Tunnel(reader, writer).run)
    return await _refusal(answer, reader, writer)


async def _dial(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await reach(target, _open)
    except DialFailed as error:
        raise StatusError(f"error dialing backend: {error}") from None


async def _open(place: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = place.server_name or place.host if place.tls else None
    return await asyncio.open_connection(
        place.connect_host, place.connect_port, ssl=place.tls, server_hostname=name, limit=_MAX_HEAD
    )


def _forwarded(request: Request) -> Headers:
    kept = [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
    if request.client is not None:
        earlier = [value for name, value in kept if name == b"x-forwarded-for"]
        kept = [(name, value) for name, value in kept if name != b"x-forwarded-for"]
        kept.append((b"x-forwarded-for", b", ".join([*earlier, request.client[0].encode()])))
    return kept


def _head(request: Request, target: Target, headers: Headers) -> bytes:
    """Raises StatusError."""
    method, resource = request.method.encode(), target.resource.encode()
    try:
        check_request(method, resource, headers)
    except InvalidHead as error:
        raise StatusError(f"error sending request: {error}") from None
    return b"\r\n".join([b"%b %b HTTP/1.1" % (method, resource), *(b"%b: %b" % pair for pair in headers), b"", b""])


async def _read_answer(reader: asyncio.StreamReader) -> _Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    status_line, *lines = head[:-4].split(b"\r\n")
    pairs = (line.partition(b":") for line in lines)
    headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
    words = status_line.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise OSError(f"malformed HTTP response {status_line.decode('latin-1')!r}")
    return _Answer(int(words[1]), headers)


async def _refusal(answer: _Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Response:
    if answer.status < 400:
        writer.close()
        raise StatusError(f"invalid upgrade response: status code {answer.status}")
    length = next((int(value) for name, value in answer.headers if name == b"content-length"), None)
    try:
        body = await reader.read(_CHUNK) if length is None else await reader.readexactly(min(length, _CHUNK))
    except asyncio.IncompleteReadError as error:
        body = error.partial
    writer.close()
    kept = [(name, value) for name, value in answer.headers if name == b"content-type"]
    return Response(answer.status, body, kept)


@dataclass(frozen=True, slots=True)
class _Tunnel:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def run(self, transport: asyncio.Transport, early: bytes) -> None:
        """Ends when either side does, and closes the other."""
        client = raw_connection(transport, early)
        try:
            await until_one_ends(_pump(client.reader, self.writer), _pump(self.reader, client.writer))
        finally:
            self.writer.close()
            client.writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
