"""A client for any event loop (asyncio or trio), whose connections live in the loop of a blocking client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, TypeVar

from pilothouse.client.blocking import BlockingClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.transport import HttpRequest, HttpResponse

T = TypeVar("T")


def client_for_any_loop(host: BlockingClient) -> Client:
    """Return the client. Closing is not necessary: the blocking client owns the connections."""
    return Client(_Transport(host))


class _Transport:
    def __init__(self, host: BlockingClient) -> None:
        self._host = host

    async def send(self, request: HttpRequest) -> HttpResponse:
        return _Response(self._host, await _await_in(self._host, self._host.transport.send(request)))

    async def close(self) -> None:
        """Do nothing: the blocking client owns the connections."""


class _Response:
    def __init__(self, host: BlockingClient, inner: HttpResponse) -> None:
        self._host = host
        self._inner = inner

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        return await _await_in(self._host, self._inner.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = self._inner.chunks()
        while (chunk := await _await_in(self._host, _next(chunks))) is not None:
            yield chunk

    async def close(self) -> None:
        await _await_in(self._host, self._inner.close())


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _await_in(host: BlockingClient, work: Coroutine[Any, Any, T]) -> T:
    """Await work in the other loop. Cancelling the wait cancels the work."""
    future = host.submit(work)
    trio = sys.modules.get("trio")
    if trio is None or not trio.lowlevel.in_trio_run():
        return await asyncio.wrap_future(future)
    try:
        result: T = await trio.to_thread.run_sync(future.result, abandon_on_cancel=True)
        return result
    except BaseException:
        future.cancel()
        raise
