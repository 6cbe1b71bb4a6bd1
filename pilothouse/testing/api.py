"""The server as a test sees it: with coroutines, or with calls that wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.access import ServerAccess, http_request
from pilothouse.testing.answer import Answer
from pilothouse.testing.on_the_bench import BlockingOnTheBench, OnTheBench

if TYPE_CHECKING:
    from pilothouse.apiserver.http import Handler
    from pilothouse.apiserver.storage.snapshots import Snapshots, StoredSnapshot
    from pilothouse.client.blocking import BlockingClient
    from pilothouse.client.rest.client import Client
    from pilothouse.client.rest.transport import HttpResponse, Transport
    from pilothouse.testing.in_thread import InThread, LoopThread

_JSON = "application/json"

B = TypeVar("B", bound="BlockingAPI")


@dataclass(slots=True)
class API(OnTheBench, ServerAccess):
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
    snapshots: Snapshots | None = field(default=None, repr=False, kw_only=True)
    """What the server stores, where it runs in this event loop."""
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

    async def service_account(self, name: str) -> API:
        """Return the same server as the service account `namespace/name` sees it, with a kubeconfig and a token of its
        own. An account that is not there is made. Raises ValueError, StatusError.

        >>> from pilothouse.testing import server
        >>> async with server(authorization_mode="RBAC") as api:
        ...     robot = await api.service_account("default/robot")
        ...     print((await robot.request("GET", "/api/v1/pods")).json["message"].partition(" cannot")[0])
        pods is forbidden: User "system:serviceaccount:default:robot"
        """
        from pilothouse.testing.service_accounts import kubeconfig_of_account

        return replace(self, kubeconfig=await kubeconfig_of_account(self, name), token="")

    async def snapshot(self) -> StoredSnapshot:
        """Return all objects as they are now, to go back to by `restore`. It takes no time and hardly any memory.

        A server in another process keeps it there. Raises ValueError where that one was started without `testing=True`.
        """
        if self.snapshots is not None:
            return await self.snapshots.save()
        from pilothouse.testing.kept_snapshots import save_there

        return await save_there(self)

    async def restore(self, snapshot: StoredSnapshot) -> None:
        """Make all objects what they were. Clients that watch are told that what they saw is too old, and list again.

        Raises ValueError for a snapshot that another process keeps.

        >>> from pilothouse.testing import server
        >>> async with server() as api:
        ...     before = await api.snapshot()
        ...     gone = await api.request("DELETE", "/api/v1/namespaces/default")
        ...     await api.restore(before)
        ...     (await api.request("GET", "/api/v1/namespaces/default")).json["status"]
        {'phase': 'Active'}
        """
        from pilothouse.testing.kept_snapshots import KeptSnapshot, restore_there

        if "--testing=true" in self.home.arguments:
            await self.clear_bench()
        if isinstance(snapshot, KeptSnapshot):
            await restore_there(self, snapshot)
        elif self.snapshots is not None:
            await self.snapshots.restore(snapshot)
        else:
            raise ValueError("a server in another process goes back only to what it keeps itself")

    def fork(self) -> AbstractAsyncContextManager[API]:
        """Run another server, for as long as a block lasts, on a copy of all that this one has when the block begins.

        It has the same flags, users and certificates, and a port of its own; it is a process where this one is.
        Raises ValueError where the objects are in etcd.

        >>> from pilothouse.testing import server
        >>> async with server() as api, api.fork() as other:
        ...     (await other.request("DELETE", "/api/v1/namespaces/default")).status
        ...     (await api.request("GET", "/api/v1/namespaces/default")).json["status"]
        200
        {'phase': 'Active'}
        """
        from pilothouse.testing.fork import fork

        return fork(self.home, process=self.handler is None)

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
class BlockingAPI(BlockingOnTheBench, ServerAccess):
    """A running server, for code without an event loop. May be used from several threads.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     [namespace["metadata"]["name"] for namespace in api.client().resource("v1", "namespaces").items()]
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    opened: ExitStack = field(repr=False, kw_only=True)
    """Closes, when the server ends, what was opened on it."""
    send: Callable[..., Answer] = field(repr=False, kw_only=True)
    loop: LoopThread = field(repr=False, kw_only=True)
    behind: API = field(repr=False, kw_only=True)
    """The same server for code in its own event loop."""

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

    def service_account(self: B, name: str) -> B:
        """As `API.service_account`."""
        return replace(self, kubeconfig=self.loop.run(self.behind.service_account(name)).kubeconfig, token="")

    def snapshot(self) -> StoredSnapshot:
        """As `API.snapshot`."""
        return self.loop.run(self.behind.snapshot())

    def restore(self, snapshot: StoredSnapshot) -> None:
        """As `API.restore`.

        >>> from pilothouse.testing import Server
        >>> with Server() as api:
        ...     before = api.snapshot()
        ...     gone = api.request("DELETE", "/api/v1/namespaces/kube-public")
        ...     api.restore(before)
        ...     api.request("GET", "/api/v1/namespaces/kube-public").json["status"]
        {'phase': 'Active'}
        """
        self.loop.run(self.behind.restore(snapshot))

    def fork(self) -> InThread:
        """As `API.fork`: for a `with` block, or from `start` to `stop`.

        >>> from pilothouse.testing import Server
        >>> with Server() as api, api.fork() as other:
        ...     api.url == other.url
        False
        """
        from pilothouse.testing.in_thread import InThread

        return InThread(self.behind.fork())
