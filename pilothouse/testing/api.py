"""The server of a test: with coroutines (API), or with blocking calls (BlockingAPI)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.access import Answer, ServerAccess, http_request
from pilothouse.testing.on_the_bench import BlockingOnTheBench, OnTheBench

if TYPE_CHECKING:
    from pilothouse.apiserver.http import Handler
    from pilothouse.apiserver.storage.snapshots import Snapshots, StoredSnapshot
    from pilothouse.bench.bench import Bench
    from pilothouse.client.blocking import BlockingClient
    from pilothouse.client.rest.client import Client
    from pilothouse.client.rest.transport import HttpResponse, Transport
    from pilothouse.testing.in_thread import InThread, LoopThread, Sender

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
    """Closes clients and other resources when the server ends."""
    handler: Handler | None = field(default=None, repr=False, kw_only=True)
    """Handler of a server in this event loop, else None."""
    snapshots: Snapshots | None = field(default=None, repr=False, kw_only=True)
    """Store of a server in this event loop, else None."""
    bench: Bench | None = field(default=None, repr=False, kw_only=True)
    """Test bench of a server with `testing=True` in this event loop, else None."""
    _transport: Transport | None = field(default=None, init=False, repr=False)

    def client(self, *, in_process: bool = False) -> Client:
        """Return a client of this user, which is closed with the server.

        With `in_process`, requests pass every filter but no socket. Raises ValueError for a server in another
        process, and
        for users of `as_user`, whose certificates need a socket.
        """
        from pilothouse.client.rest.client import Client
        from pilothouse.client.rest.connect import connect

        if in_process and not self._is_in_process:
            raise ValueError("in_process needs the administrator of a server in this event loop")
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
        """Send a request and return its response, whatever its status. Keywords are headers: `if_match="1"`."""
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
        """Send a request as `request`, and return after the response headers. Close the response, or read it to its
        end.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._transport is None:
            self._transport = self._call_transport() if self._is_in_process else self._http_transport()
        return await self._transport.send(http_request(method, target, body, media, accept, named))

    async def service_account(self, name: str) -> API:
        """Return the same server for the service account `namespace/name`, with a kubeconfig and a token.

        A missing account is created. Raises ValueError, StatusError.

        >>> from pilothouse.testing import server
        >>> async with server(authorization_mode="RBAC") as api:
        ...     robot = await api.service_account("default/robot")
        ...     print((await robot.request("GET", "/api/v1/pods")).json["message"].partition(" cannot")[0])
        pods is forbidden: User "system:serviceaccount:default:robot"
        """
        from pilothouse.testing.access import kubeconfig_of_account

        return replace(self, kubeconfig=await kubeconfig_of_account(self, name), token="")

    async def snapshot(self) -> StoredSnapshot:
        """Return a snapshot of all objects for `restore`. Takes almost no time and memory.

        A server in another process keeps the snapshot there. Raises ValueError if that server runs without
        `testing=True`.
        """
        if self.snapshots is not None:
            return await self.snapshots.save()
        from pilothouse.testing.bench import save_remote

        return await save_remote(self)

    async def restore(self, snapshot: StoredSnapshot) -> None:
        """Restore all objects of a snapshot. Watches end with 410 Gone, so that clients list again.

        Raises ValueError for a snapshot of another process.

        >>> from pilothouse.testing import server
        >>> async with server() as api:
        ...     before = await api.snapshot()
        ...     gone = await api.request("DELETE", "/api/v1/namespaces/default")
        ...     await api.restore(before)
        ...     (await api.request("GET", "/api/v1/namespaces/default")).json["status"]
        {'phase': 'Active'}
        """
        from pilothouse.testing.bench import RemoteSnapshot, restore_remote

        if "--testing=true" in self.home.arguments:
            await self.clear_bench()
        if isinstance(snapshot, RemoteSnapshot):
            await restore_remote(self, snapshot)
        elif self.snapshots is not None:
            await self.snapshots.restore(snapshot)
        else:
            raise ValueError("a server in another process can restore only its own snapshots")

    def fork(self) -> AbstractAsyncContextManager[API]:
        """Run another server on a copy of this server's data, for the duration of a block.

        The fork has the same flags, users and certificates, and its own port. It runs in a process if this server does.
        Raises ValueError if the objects are in etcd.

        >>> from pilothouse.testing import server
        >>> async with server() as api, api.fork() as other:
        ...     (await other.request("DELETE", "/api/v1/namespaces/default")).status
        ...     (await api.request("GET", "/api/v1/namespaces/default")).json["status"]
        200
        {'phase': 'Active'}
        """
        from pilothouse.testing.home import fork

        return fork(self.home, process=self.handler is None)

    @property
    def _is_in_process(self) -> bool:
        return self.handler is not None and bool(self.token)

    def _call_transport(self) -> Transport:
        from pilothouse.apiserver.serving.asgi import AsgiApp
        from pilothouse.client.rest.connect import AsgiTransport

        assert self.handler is not None
        return AsgiTransport(AsgiApp(self.handler), headers={"authorization": f"Bearer {self.token}"})

    def _http_transport(self) -> Transport:
        from pilothouse.client.rest.http_transport import HttpTransport

        transport = HttpTransport(self.config())
        self.opened.push_async_callback(transport.close)
        return transport


@dataclass(slots=True)
class BlockingAPI(BlockingOnTheBench, ServerAccess):
    """A running server, for code without an event loop. Thread-safe.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     [namespace["metadata"]["name"] for namespace in api.client().resource("v1", "namespaces").items()]
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    opened: ExitStack = field(repr=False, kw_only=True)
    """Closes clients and other resources when the server ends."""
    send: Sender = field(repr=False, kw_only=True)
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
        """Send a request and return its response, whatever its status. Keywords are headers: `if_match="1"`."""
        return self.send(self, method, target, body, media=media, accept=accept, **headers)

    def service_account(self: B, name: str) -> B:
        """Blocking form of `API.service_account`."""
        return replace(self, kubeconfig=self.loop.run(self.behind.service_account(name)).kubeconfig, token="")

    def snapshot(self) -> StoredSnapshot:
        """Blocking form of `API.snapshot`."""
        return self.loop.run(self.behind.snapshot())

    def restore(self, snapshot: StoredSnapshot) -> None:
        """Blocking form of `API.restore`.

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
        """Blocking form of `API.fork`, for a `with` block, or from `start` to `stop`.

        >>> from pilothouse.testing import Server
        >>> with Server() as api, api.fork() as other:
        ...     api.url == other.url
        False
        """
        from pilothouse.testing.in_thread import InThread

        return InThread(self.behind.fork())
