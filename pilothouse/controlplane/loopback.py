"""The loopback client: in-process calls of the server to its own handler chain.

Clients can be created before the chain, because the servers of the chain need a client. Calls wait until `bind`.

HandlerTransport passes Request and Response objects without HTTP serialization. A call runs in the caller's task and is
cancelled with the task. A streamed body advances when its reader asks for the next chunk.

WorkerGate blocks writes of controllers, scheduler and simulated nodes during the restore of a snapshot. Decisions from
before the restore must not be written after the restore: pods of a deleted set would reappear. Blocked writes fail with
Conflict, and the workers retry with current informers. Later creates, such as delayed events, fail if they refer to a
removed object.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.chain import ChainConfig, loopback_handler_chain
from pilothouse.apiserver.http import Handler, Request, Response, body_in_memory
from pilothouse.apiserver.serving.exchange import parse_target
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.streams import close_stream
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict
from pilothouse.machinery.event_loop import yield_to_loop


class Loopback:
    def __init__(self, chain: ChainConfig, *, host: str = "localhost") -> None:
        """Create the loopback. `host` labels the calls in metrics."""
        self._chain = chain
        self._host = host
        self._bound = asyncio.Event()
        self._api: Handler | None = None
        self.gate = WorkerGate()
        self.client: Client = self._client(self._call, "kube-apiserver")

    def client_named(self, program: str, user: User | None = None) -> Client:
        """Return a client for background workers. `program` is the manager name in managedFields.

        Requests act as `user`; without a user as system:apiserver, which has every permission.
        """
        return self._client(self.gate.before(self._call), program, user)

    def _client(self, call: Handler, program: str, user: User | None = None) -> Client:
        handler = loopback_handler_chain(call, self._chain, user)
        agent = f"{program}/{release.current().git_version}"
        # Warnings are dropped: the server issued them to itself.
        return Client(HandlerTransport(handler), user_agent=agent, on_warning=lambda warning: None, host=self._host)

    def bind(self, api: Handler) -> None:
        """Send calls to this handler from now on."""
        self._api = api
        self._bound.set()

    async def _call(self, request: Request) -> Response:
        await self._bound.wait()
        assert self._api is not None
        request.is_own = True
        return await self._api(request)


@dataclass(frozen=True, slots=True)
class HandlerTransport:
    handler: Handler

    async def send(self, request: HttpRequest) -> HandlerResponse:
        await yield_to_loop()  # a caller in a tight loop must not starve other tasks
        try:
            async with asyncio.timeout(request.timeout) as limit:
                response = await self.handler(_request(request))
        except TimeoutError:
            raise _timed_out(request) from None
        except Exception as error:
            raise ConnectionFailed("the server gave no answer") from error
        ends = limit.when()
        if limit.expired() or (
            ends is not None and asyncio.get_running_loop().time() >= ends
        ):  # the handler has its own timeout, and may answer after this limit
            raise _timed_out(request)
        return HandlerResponse(response)

    async def close(self) -> None:
        return


def _timed_out(request: HttpRequest) -> RequestTimedOut:
    return RequestTimedOut(f"no answer within {request.timeout} s")


def _request(request: HttpRequest) -> Request:
    target = parse_target(request.target.encode())
    named = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.items()]
    return Request(
        request.method,
        target.path,
        target.query_string,
        [(b"host", b"localhost"), *named, (b"content-length", b"%d" % len(request.body))],
        body_in_memory(request.body),
    )


class HandlerResponse:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        joined: dict[str, str] = {}
        for raw_name, raw_value in response.headers:
            name, value = raw_name.decode(), raw_value.decode("latin-1")
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        self.headers = joined
        self._body = response.body

    async def read(self) -> bytes:
        if isinstance(self._body, bytes):
            return self._body
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, bytes):
            yield self._body
            return
        try:
            async for chunk in self._body:
                yield chunk
        except Exception as error:
            raise ConnectionFailed("the server ended its answer before it was complete") from error

    async def close(self) -> None:
        if not isinstance(self._body, bytes):
            await close_stream(self._body)


_READS = ("get", "list", "watch")
_UID = re.compile(rb'"uid":"([^"]+)"')
_MOST_BODY = 3 * 1024 * 1024
_PATIENCE = 1.0
"""Seconds to wait for writes in flight. A write that waits for an external webhook can take longer."""
_REPLACED = "the cluster was put back to a snapshot meanwhile"


class WorkerGate:
    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._running = 0
        self._gone: frozenset[bytes] = frozenset()  # uids of objects removed by the last restore
        self._idle = asyncio.Event()
        self._idle.set()

    def before(self, handler: Handler) -> Handler:
        """Wrap the handler for calls of workers."""

        async def pass_through(request: Request) -> Response:
            if request.info.verb in _READS:
                return await handler(request)
            if await self._comes_too_late(request):
                raise Conflict.of(request.info.group_resource, request.info.name, _REPLACED)
            self._running += 1
            self._idle.clear()
            try:
                return await handler(request)
            finally:
                self._running -= 1
                if not self._running:
                    self._idle.set()

        return pass_through

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Block writes during the block. Waits for writes in flight first; writes that arrive later fail with
        Conflict."""
        self._open.clear()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._idle.wait()
        except TimeoutError:
            pass  # the write may itself wait for the restore
        try:
            yield
        finally:
            self._open.set()

    def taken_away(self, entries: Sequence[Entry]) -> None:
        """Reject later creates that refer to these objects. The first uid in an entry is the object's own."""
        matches = (_UID.search(entry.value) for entry in entries)
        self._gone = frozenset(match[1] for match in matches if match)

    async def _comes_too_late(self, request: Request) -> bool:
        if not self._open.is_set():
            await self._open.wait()
            return True
        if request.info.verb != "create" or not self._gone:
            return False
        return not self._gone.isdisjoint(_UID.findall(await request.read_body(_MOST_BODY)))
