"""One request whose body is at hand, and its answer: as it comes, or whole.

exchange = await send(OutboundRequest("GET", target))       on a connection of its own, which close() ends
answer = await ask(OutboundRequest("GET", target), limit=1 << 20)
"""

from __future__ import annotations

from dataclasses import field

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.dialing import Connection, Dialer
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.machinery.dataclass import dataclass

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """Its Host is the target's, unless the headers have one; they must not say how long the body is."""

    method: str
    target: Target
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    def send_on(self, exchange: BackendExchange) -> None:
        """Raises BackendFailed for what can not be sent."""
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
    """The answer is longer than its reader's limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")


async def send(request: OutboundRequest) -> BackendExchange:
    """The exchange has a connection of its own, and must be closed. Raises BackendFailed."""
    exchange = _only_exchange(await Dialer(request.target.tls).dial(request.target))
    try:
        request.send_on(exchange)
    except BaseException:
        exchange.close()
        raise
    return exchange


async def ask(request: OutboundRequest, *, limit: int) -> OutboundResponse:
    """Raises BackendFailed, and AnswerTooLarge for a body of more than `limit` bytes."""
    exchange = await send(request)
    try:
        head = await exchange.head()
        return await read_answer(exchange, head, limit=limit)
    finally:
        exchange.close()


async def read_answer(exchange: BackendExchange, head: Head, *, limit: int) -> OutboundResponse:
    """Raises BackendFailed when the body breaks off, AnswerTooLarge when it has more than `limit` bytes."""
    body = bytearray()
    async for chunk in exchange.body():
        body += chunk
        if len(body) > limit:
            raise AnswerTooLarge(limit)
    return OutboundResponse(head.status, head.headers, bytes(body))


def _only_exchange(connection: Connection) -> BackendExchange:
    """The connection ends with it."""
    if isinstance(connection, BackendConnection):
        return connection
    exchange = connection.stream()
    connection.close()
    return exchange


def header(headers: Headers, name: bytes) -> str:
    """The first value; empty where there is none."""
    return next((value.decode("latin-1") for each, value in headers if each == name), "")
