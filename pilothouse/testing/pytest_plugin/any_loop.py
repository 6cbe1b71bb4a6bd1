"""The server and its clients for any event loop (asyncio or trio): connections live in the loop of the server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from typing import Any, Protocol, TypeVar

from pilothouse.apiserver.storage.snapshots import StoredSnapshot
from pilothouse.client.blocking import BlockingClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.transport import HttpRequest, HttpResponse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.access import Answer
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.cluster_set import BlockingClusters, Clusters, enter, leave
from pilothouse.testing.in_thread import InThread

T = TypeVar("T")
A = TypeVar("A", bound="AnyLoopAPI")


@dataclass(slots=True)
class AnyLoopAPI(API):
    """The API of a server in a thread, for code in any event loop. No call blocks that loop."""

    blocking: BlockingAPI = field(repr=False, kw_only=True)
    """The same server and user without an event loop."""

    @classmethod
    def of(cls: type[A], api: BlockingAPI) -> A:
        return cls(api.url, api.kubeconfig, api.token, api.home, opened=AsyncExitStack(), blocking=api)

    def client(self, *, in_process: bool = False) -> Client:
        if in_process:
            raise ValueError("in_process needs a server in this event loop: `pilothouse.testing.server`")
        return client_for_any_loop(self._user.client())

    async def request(self, method: str, target: str, body: Any = None, **options: Any) -> Answer:
        return await self._await(self._behind.request(method, target, body, **options))

    async def open(self, method: str, target: str, body: Any = None, **options: Any) -> HttpResponse:
        response = await self._await(self._behind.open(method, target, body, **options))
        return _Response(self.blocking.loop, response)

    async def service_account(self: A, name: str) -> A:
        account = await self._await(self._behind.service_account(name))
        return replace(self, kubeconfig=account.kubeconfig, token="")

    async def snapshot(self) -> StoredSnapshot:
        return await self._await(self._behind.snapshot())

    async def restore(self, snapshot: StoredSnapshot) -> None:
        await self._await(self._behind.restore(snapshot))

    def fork(self) -> AbstractAsyncContextManager[API]:
        return _in_thread(InThread(self._behind.fork()))

    async def settle(self, timeout: float = 30.0, *, user_agents: Iterable[str] = (), quiet_for: str = "") -> None:
        await self._await(self._behind.settle(timeout, user_agents=user_agents, quiet_for=quiet_for))

    async def eventually(self, condition: Callable[[], Awaitable[T] | T], within: float = 10.0) -> T:
        from pilothouse.testing.eventually import eventually

        return await eventually(self._behind, condition, within, self._await)

    @property
    def _behind(self) -> API:
        return self.blocking.send.connection(self.kubeconfig)

    @property
    def _user(self) -> BlockingAPI:
        return replace(self.blocking, kubeconfig=self.kubeconfig, token=self.token)

    async def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return await _await_in(self.blocking.loop, work)


class AnyLoopClusters(Clusters):
    """Several clusters in a thread, for code in any event loop."""

    def __init__(self, blocking: BlockingClusters) -> None:
        self._blocking = blocking
        self.kubeconfig = blocking.kubeconfig

    @property
    def names(self) -> list[str]:
        return self._blocking.names

    def __getitem__(self, name: str) -> API:
        return AnyLoopAPI.of(self._blocking[name])

    def group(self, name: str) -> list[API]:
        return [AnyLoopAPI.of(api) for api in self._blocking.group(name)]

    def partition(self, *names: str, silent: bool = False) -> AbstractAsyncContextManager[None]:
        return self._entered(self._blocking.behind.partition(*names, silent=silent))

    def latency(self, delay: str, *names: str) -> AbstractAsyncContextManager[None]:
        return self._entered(self._blocking.behind.latency(delay, *names))

    async def settle(self, timeout: float = 30.0) -> None:
        await _await_in(self._blocking.loop, self._blocking.behind.settle(timeout))

    async def reset(self) -> None:
        await _await_in(self._blocking.loop, self._blocking.behind.reset())

    @asynccontextmanager
    async def _entered(self, block: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
        await _await_in(self._blocking.loop, enter(block))
        try:
            yield
        finally:
            await _await_in(self._blocking.loop, leave(block))


@asynccontextmanager
async def _in_thread(server: InThread) -> AsyncIterator[AnyLoopAPI]:
    api = await _await_call(server.start)
    try:
        yield AnyLoopAPI.of(api)
    finally:
        await _await_call(server.stop)


def client_for_any_loop(host: BlockingClient) -> Client:
    """Return the client. Closing is not necessary: the blocking client owns the connections."""
    return Client(_Transport(host))


class _Loop(Protocol):
    """An event loop in another thread."""

    def submit(self, work: Coroutine[Any, Any, T], /) -> Future[T]: ...


class _Transport:
    def __init__(self, host: BlockingClient) -> None:
        self._host = host

    async def send(self, request: HttpRequest) -> HttpResponse:
        return _Response(self._host, await _await_in(self._host, self._host.transport.send(request)))

    async def close(self) -> None:
        """Do nothing: the blocking client owns the connections."""


class _Response:
    def __init__(self, loop: _Loop, inner: HttpResponse) -> None:
        self._loop = loop
        self._inner = inner

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        return await _await_in(self._loop, self._inner.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = self._inner.chunks()
        while (chunk := await _await_in(self._loop, _next(chunks))) is not None:
            yield chunk

    async def close(self) -> None:
        await _await_in(self._loop, self._inner.close())


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _await_in(loop: _Loop, work: Coroutine[Any, Any, T]) -> T:
    """Await work in the other loop. Cancelling the wait cancels the work."""
    future = loop.submit(work)
    if not _in_trio():
        return await asyncio.wrap_future(future)
    try:
        return await _await_call(future.result)
    except BaseException:
        future.cancel()
        raise


async def _await_call(call: Callable[[], T]) -> T:
    """Await a blocking call in a thread."""
    if not _in_trio():
        return await asyncio.to_thread(call)
    result: T = await sys.modules["trio"].to_thread.run_sync(call, abandon_on_cancel=True)
    return result


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())
