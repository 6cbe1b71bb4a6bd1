"""A client of several replicas with the retries of client-go, and no others.

A request is sent again, to the next replica, when nothing of it can have been carried out: no connection could be made,
the server says by GOAWAY that it has not looked at the request, or it answers 429 or 503 with Retry-After. A GET is
also sent again when its connection broke off. Everything else that goes wrong is a failure.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.failures import BackendFailed, DialFailed
from pilothouse.apiserver.outbound.pool import ConnectionPool
from pilothouse.apiserver.outbound.request import OutboundRequest, header, read_answer
from pilothouse.apiserver.outbound.targets import Target

_TRIES = 100
_BETWEEN_DIALS = 0.02
_ANSWER = 1 << 20


@dataclass
class Retries:
    """How often, for each reason, and how long the longest request took with all of its."""

    refused: int = 0
    went_away: int = 0
    asked_to: int = 0
    broke_off: int = 0
    longest: float = 0.0


class RequestFailed(AssertionError):
    """What client-go would return to its caller."""


@dataclass
class RetryingClient:
    """`tls` decides whether it speaks HTTP/2 or HTTP/1.1, and who it is."""

    ports: Sequence[int]
    tls: ssl.SSLContext
    retries: Retries
    _turn: int = 0
    _pool: ConnectionPool = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ConnectionPool(self.tls)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer. Raises RequestFailed."""
        start = time.monotonic()
        exchange, target = await self._send(method, path, body)
        found = await self._read(exchange, target)
        self.retries.longest = max(self.retries.longest, time.monotonic() - start)
        return found

    async def lines(self, path: str) -> AsyncGenerator[Any, None]:
        """Of a watch, until it ends or breaks off."""
        exchange, _ = await self._send("GET", path, None)
        unread = b""
        try:
            async for chunk in exchange.body():
                *whole, unread = (unread + chunk).split(b"\n")
                for line in whole:
                    yield json.loads(line)
        except BackendFailed:
            self.retries.broke_off += 1
        finally:
            exchange.close()

    def close(self) -> None:
        self._pool.close()

    async def _read(self, exchange: BackendExchange, target: Target) -> Any:
        try:
            return json.loads((await read_answer(exchange, await exchange.head(), limit=_ANSWER)).body)
        finally:
            self._pool.give_back(target, exchange)

    async def _send(self, method: str, path: str, body: Any) -> tuple[BackendExchange, Target]:
        """A successful answer whose body is still to be read."""
        for _ in range(_TRIES):
            plain, _, query = path.partition("?")
            target = Target("127.0.0.1", self.ports[self._turn % len(self.ports)], plain, query, tls=self.tls)
            found = await self._attempt(OutboundRequest(method, target, _fields(body), _bytes(body)))
            if found is not None:
                return found, target
            self._turn += 1
        raise RequestFailed(f"{method} {path}: no replica answers")

    async def _attempt(self, request: OutboundRequest) -> BackendExchange | None:
        """None if it is to be sent again."""
        try:
            exchange = await self._pool.take(request.target)
        except DialFailed:
            self.retries.refused += 1
            await asyncio.sleep(_BETWEEN_DIALS)
            return None
        try:
            request.send_on(exchange)
            head = await exchange.head()
        except BackendFailed as error:
            exchange.close()
            self._count(request, error)
            return None
        if head.status < 300:
            return exchange
        wait, body = header(head.headers, b"retry-after"), (await read_answer(exchange, head, limit=_ANSWER)).body
        self._pool.give_back(request.target, exchange)
        if head.status not in (429, 503) or not wait:
            raise RequestFailed(f"{request.method} {request.target.path}: {head.status} {body!r}")
        self.retries.asked_to += 1
        await asyncio.sleep(float(wait))
        return None

    def _count(self, request: OutboundRequest, error: BackendFailed) -> None:
        """Raises RequestFailed unless the request may be sent again."""
        if error.unprocessed:
            self.retries.went_away += 1
        elif request.method == "GET" and error.unanswered:
            self.retries.broke_off += 1
        else:
            raise RequestFailed(f"{request.method} {request.target.path}: {error}")


def _bytes(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


def _fields(body: Any) -> list[tuple[bytes, bytes]]:
    return [] if body is None else [(b"content-type", b"application/json")]
