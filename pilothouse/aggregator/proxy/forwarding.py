"""Forwarding of one request to an aggregated server, with streaming in both directions.

A repeatable request is sent again if an idle pooled connection turns out to be closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from pilothouse.aggregator.proxy.headers import answered, forwarded
from pilothouse.apiserver.http import Headers, Request, Response
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.tracing.http_spans import joined, outgoing
from pilothouse.apiserver.tracing.spans import CURRENT
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.outbound.pool import ConnectionPool

_WHOLE_BODY = 256 << 10
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Forwarding:
    """`deadline`: event loop time; None for long-running requests."""

    request: Request
    target: Target
    pool: ConnectionPool
    deadline: float | None

    async def run(self) -> Response:
        """Forward the request. Raises BackendFailed."""
        if CURRENT.get() is None:
            return await self._run([])
        with outgoing(self.request.method, self.target.url) as traced:
            response = await self._run(traced.headers)
            traced.answered(response.status)
            return response

    async def _run(self, trace: Headers) -> Response:
        body = await self._whole_body()
        connection = await self.pool.take(self.target)
        try:
            return await self._exchange(connection, body, trace)
        except BackendFailed as error:
            connection.close()
            if body is None or not (error.unprocessed or self._repeatable(connection, error, body)):
                raise
        except BaseException:
            connection.close()
            raise
        connection = await self.pool.take(self.target, fresh=True)
        try:
            return await self._exchange(connection, body, trace)
        except BaseException:
            connection.close()
            raise

    def _repeatable(self, connection: BackendExchange, error: BackendFailed, body: bytes) -> bool:
        """Return whether the request may be sent again: unanswered, on a reused connection, without a body, and
        idempotent."""
        return error.unanswered and connection.reused and body == b"" and self.request.method in _REPEATABLE

    async def _whole_body(self) -> bytes | None:
        """Return the complete body; None for bodies to be streamed."""
        request = self.request
        declared = request.header(b"content-length")
        if request.stream_body is None or (declared.isdecimal() and int(declared) <= _WHOLE_BODY):
            return await request.read_body(_WHOLE_BODY if request.stream_body else 64 << 20)
        may_come = request.header(b"transfer-encoding") or (
            request.http_version == "2" and request.method not in _REPEATABLE
        )
        return None if declared or may_come else b""

    async def _exchange(self, connection: BackendExchange, body: bytes | None, trace: Headers) -> Response:
        headers = joined(forwarded(self.request, self.target), trace)
        if body is None and not self.request.header(b"content-length"):
            headers.append((b"transfer-encoding", b"chunked"))
        elif body and not self.request.header(b"content-length"):
            headers.append((b"content-length", b"%d" % len(body)))
        connection.send_head(self.request.method, self.target.resource, headers)
        sending = self._send(connection, body)
        head = await self._head(connection)
        kept = answered(head.headers)
        whole = connection.whole_body
        if whole is not None:
            _stop(sending)
            self.pool.give_back(self.target, connection)
            return Response(head.status, whole, kept)
        if self.deadline is not None:
            connection.fail_at(self.deadline)
        return Response(head.status, self._stream(connection, sending), kept)

    async def _head(self, connection: BackendExchange) -> Head:
        """Wait for the response head: until the deadline, or until the client leaves for long-running requests."""
        if self.deadline is not None or self.request.disconnected is None:
            return await connection.head()
        head = asyncio.ensure_future(connection.head())
        disconnected = asyncio.ensure_future(self.request.disconnected())
        try:
            await asyncio.wait({head, disconnected}, return_when=asyncio.FIRST_COMPLETED)
            if not head.done():
                raise BackendFailed("context canceled")
            return head.result()
        finally:
            head.cancel()
            disconnected.cancel()

    def _send(self, connection: BackendExchange, body: bytes | None) -> asyncio.Task[None] | None:
        if body is not None:
            connection.send_end(body)
            return None
        assert self.request.stream_body is not None
        return asyncio.create_task(_send_stream(connection, self.request.stream_body()))

    async def _stream(self, connection: BackendExchange, sending: asyncio.Task[None] | None) -> AsyncIterator[bytes]:
        try:
            async for chunk in connection.body():
                yield chunk
        finally:
            _stop(sending)
            self.pool.give_back(self.target, connection)


async def _send_stream(connection: BackendExchange, body: AsyncIterator[bytes]) -> None:
    """Stream the body. If the client disconnects, abort the backend request."""
    try:
        await connection.send_stream(body)
    except ConnectionError:
        connection.close()


def _stop(sending: asyncio.Task[None] | None) -> None:
    if sending is not None:
        with suppress(asyncio.CancelledError):
            sending.cancel()
