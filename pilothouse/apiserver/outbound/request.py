"""A request with an in-memory body, and its response: streamed or whole.

exchange = await send(OutboundRequest("GET", target))       on a dedicated connection, ended by close()
answer = await ask(OutboundRequest("GET", target), limit=1 << 20)
"""

from __future__ import annotations

import zlib
from dataclasses import field, replace

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.offload import offload
from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.dialing import Connection, Dialer
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.machinery.dataclass import dataclass

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request. Host defaults to the target; the headers must not include Content-Length."""

    method: str
    target: Target
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    def send_on(self, exchange: BackendExchange) -> None:
        """Send the request. Raises BackendFailed for an invalid request."""
        headers = list(self.headers)
        if not any(name == b"host" for name, _ in headers):
            headers.insert(0, (b"host", self.target.authority.encode("latin-1")))
        if self.body or self.method not in _WITHOUT_BODY:
            headers.append((b"content-length", b"%d" % len(self.body)))
        exchange.send_head(self.method, self.target.resource, headers)
        exchange.send_end(self.body)


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    status: int
    headers: Headers
    body: bytes

    def header(self, name: bytes) -> str:
        return header(self.headers, name)


class AnswerTooLarge(Exception):
    """The response exceeds the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")


async def send(request: OutboundRequest) -> BackendExchange:
    """Send on a dedicated connection; the caller must close the exchange. Raises BackendFailed."""
    exchange = _only_exchange(await Dialer(request.target.tls).dial(request.target))
    try:
        request.send_on(exchange)
    except BaseException:
        exchange.close()
        raise
    return exchange


async def ask(request: OutboundRequest, *, limit: int) -> OutboundResponse:
    """Return the whole response. Raises BackendFailed, or AnswerTooLarge beyond `limit` bytes."""
    exchange = await send(request)
    try:
        head = await exchange.head()
        return await read_answer(exchange, head, limit=limit)
    finally:
        exchange.close()


async def read_answer(exchange: BackendExchange, head: Head, *, limit: int) -> OutboundResponse:
    """Read the body. Raises BackendFailed if truncated, AnswerTooLarge beyond `limit` bytes."""
    body = bytearray()
    async for chunk in exchange.body():
        body += chunk
        if len(body) > limit:
            raise AnswerTooLarge(limit)
    return OutboundResponse(head.status, head.headers, bytes(body))


def _only_exchange(connection: Connection) -> BackendExchange:
    """Return an exchange that closes its connection at the end."""
    if isinstance(connection, BackendConnection):
        return connection
    exchange = connection.stream()
    connection.close()
    return exchange


def header(headers: Headers, name: bytes) -> str:
    """Return the first value, or an empty string."""
    return next((value.decode("latin-1") for each, value in headers if each == name), "")


_GZIP = 31


async def inflated(answer: OutboundResponse, *, limit: int) -> OutboundResponse:
    """Return the decompressed response. Raises AnswerTooLarge beyond `limit` bytes, and BackendFailed for truncated
    data. Decompression runs off the event loop, because a small body may expand enormously."""
    if answer.header(b"content-encoding").lower() != "gzip":
        return answer
    return replace(answer, body=await offload(_gunzipped, answer.body, limit))


def _gunzipped(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(_GZIP)
    try:
        whole = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise BackendFailed("gzip: invalid header") from None
    if len(whole) > limit:
        raise AnswerTooLarge(limit)
    if not inflater.eof:
        raise BackendFailed("unexpected EOF")
    return whole
