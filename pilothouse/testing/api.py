"""The server as a test sees it: with coroutines, or with calls that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.access import ServerAccess, http_request
from pilothouse.testing.answer import Answer

if TYPE_CHECKING:
    from pilothouse.apiserver.http import Handler
    from pilothouse.client.blocking import BlockingClient
    from pilothouse.client.rest.client import Client
    from pilothouse.client.rest.transport import HttpResponse, Transport
    from pilothouse.testing.bench import BenchObject, Faults, ServerClock

_JSON = "application/json"


@dataclass(slots=True)
class API(ServerAccess):
    """A running server, for code in an event loop.

    >>> from pilothouse.testing import server
    >>> async with server(authorization_mode="RBAC") as api:
    ...     ann = api.as_user("ann", groups=["developers"])
    ...     print((await ann.request("GET", "/api/v1/pods")).json["message"])
    pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope
    """

    opened: AsyncExitStack = field(repr=False, kw_only=True)
    """Closes, when the server ends, what was opened on it."""
    handler: Handler | None = field(default=None, repr=False, kw_only=True)
    """The server itself, where it runs in this event loop."""
    _transport: Transport | None = field(default=None, init=False, repr=False)

    def client(self, *, in_process: bool = False) -> Client:
        """Return a client of this user, which is closed with the server.

        With `in_process` its requests go through every filter, but no socket. Raises ValueError where that cannot be:
        for a server in another process, and for users of `as_user`, who are known by their certificates.
        """
        from pilothouse.client.rest.client import Client
        from pilothouse.client.rest.connect import connect

        if in_process and not self._is_at_hand:
            raise ValueError("only the administrator of a server in this event loop can do without a socket")
        client = Client(self._call_transport()) if in_process else connect(self.config())
        self.opened.push_async_callback(client.close)
        return client

    async def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        media: str = _JSON,
        accept: str = _JSON,
        **headers: str,
    ) -> Answer:
        """Send one request and return its answer, whatever its status. Further headers are keywords: `if_match="1"`."""
        response = await self.open(method, target, body, media=media, accept=accept, **headers)
        try:
            return Answer(response.status, dict(response.headers), await response.read())
        finally:
            await response.close()

    async def open(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        media: str = _JSON,
        accept: str = _JSON,
        **headers: str,
    ) -> HttpResponse:
        """As `request`, but return when the head of the answer is there. Close the answer, or read it to its end."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._transport is None:
            self._transport = self._call_transport() if self._is_at_hand else self._http_transport()
        return await self._transport.send(http_request(method, target, body, media, accept, named))

    @property
    def faults(self) -> Faults:
        """What a server with `testing=True` is to do wrong."""
        from pilothouse.testing.bench import Faults

        return Faults(self)

    def fault(self, name: str = "", **wishes: Any) -> AbstractAsyncContextManager[BenchObject]:
        """Have the server misbehave for as long as the block lasts: `fault(verbs=["create"], answer=503)`."""
        from pilothouse.testing.bench import fault_in_force

        return fault_in_force(self, name, wishes)

    @property
    def clock(self) -> ServerClock:
        """The time of a server with `testing=True`."""
        from pilothouse.testing.bench import ServerClock

        return ServerClock(self)

    def recording(
        self, name: str = "", *, users: Iterable[str] = (), user_agents: Iterable[str] = ()
    ) -> AbstractAsyncContextManager[BenchObject]:
        """Record for as long as the block lasts what these users and programs, or all, ask for."""
        from pilothouse.testing.bench import recorded

        return recorded(self, name, {"users": [*users], "userAgents": [*user_agents]})

    async def settle(self, timeout: float = 30.0) -> None:
        """Return when a server with `testing=True` has come to rest: no request is under way, no controller has work.

        Raises TimeoutError with who still works.
        """
        from pilothouse.testing.bench import settle

        await settle(self, timeout)

    @property
    def _is_at_hand(self) -> bool:
        return self.handler is not None and bool(self.token)

    def _call_transport(self) -> Transport:
        from pilothouse.apiserver.serving.asgi import AsgiApp
        from pilothouse.client.rest.asgi_transport import AsgiTransport

        assert self.handler is not None
        return AsgiTransport(AsgiApp(self.handler), headers={"authorization": f"Bearer {self.token}"})

    def _http_transport(self) -> Transport:
        from pilothouse.client.rest.http_transport import HttpTransport

        transport = HttpTransport(self.config())
        self.opened.push_async_callback(transport.close)
        return transport


@dataclass(slots=True)
class BlockingAPI(ServerAccess):
    """A running server, for code without an event loop. May be used from several threads.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     [namespace["metadata"]["name"] for namespace in api.client().resource("v1", "namespaces").items()]
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    opened: ExitStack = field(repr=False, kw_only=True)
    """Closes, when the server ends, what was opened on it."""
    send: Callable[..., Answer] = field(repr=False, kw_only=True)

    def client(self) -> BlockingClient:
        """Return a client of this user, which is closed with the server."""
        from pilothouse.client.blocking import BlockingClient

        return self.opened.enter_context(BlockingClient(self.config()))

    def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        media: str = _JSON,
        accept: str = _JSON,
        **headers: str,
    ) -> Answer:
        """Send one request and return its answer, whatever its status. Further headers are keywords: `if_match="1"`."""
        return self.send(self, method, target, body, media=media, accept=accept, **headers)
