"""The HTTP server: listeners, the timeout clock, and graceful shutdown.

No signal handlers are installed: the caller decides when to shut down.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Sequence

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.listener import BACKLOG, CurrentContext, Listener
from pilothouse.apiserver.serving.state import ServingState
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ListenEndpoint:
    """A listen address. Port 0 picks a free port.

    >>> from pilothouse.apiserver import ListenEndpoint
    >>> ListenEndpoint("127.0.0.1", 0).tls is None
    True
    """

    host: str
    port: int
    tls: CurrentContext | None = None
    reuse_port: bool = False
    listener: socket.socket | None = None
    """An existing listening socket, possibly shared with other processes."""


class Server:
    """Serves a handler on its addresses, from `start` to `shutdown`.

    >>> from pilothouse.apiserver import ListenEndpoint, Response, Server
    >>> async def hello(request):
    ...     return Response(200, b"hello")
    >>> server = Server(hello, [ListenEndpoint("127.0.0.1", 0)])
    >>> await server.start()
    >>> server.port > 0
    True
    >>> await server.shutdown()
    """

    def __init__(
        self,
        handler: Handler,
        endpoints: Sequence[ListenEndpoint],
        *,
        limits: Limits | None = None,
        tick_seconds: float = 1.0,
    ) -> None:
        self._state = ServingState(handler, limits or Limits())
        self._endpoints = endpoints
        self._tick_seconds = tick_seconds
        self._listeners: list[Listener] = []
        self._clock: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Return the bound addresses with the actual ports."""
        return [listener.address for listener in self._listeners]

    @property
    def port(self) -> int:
        """Return the port of the first listener."""
        return self._listeners[0].address[1]

    @property
    def connections(self) -> int:
        return len(self._state.connections)

    async def start(self) -> None:
        """Start listening. Raises OSError for an unavailable address."""
        try:
            for endpoint in self._endpoints:
                sock = bind(endpoint)
                self._listeners.append(Listener(sock, self._state, endpoint.tls))
        except OSError:
            self._abort_listeners()
            raise
        for listener in self._listeners:
            listener.open()
        self._clock = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._tick_seconds)
            self._state.tick()
            self._state.sweep()

    async def shutdown(self, timeout: float = 60.0) -> None:
        """Stop accepting, let requests in progress finish, and close the rest after the timeout."""
        self._state.draining = True
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self._state.connections):
            connection.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*(listener.greeted() for listener in self._listeners))
                await self._state.empty()
        await self.abort()

    async def abort(self) -> None:
        """Close everything immediately."""
        self._abort_listeners()
        for connection in tuple(self._state.connections):
            connection.abort()
        await self._state.empty()
        if self._clock is not None:
            self._clock.cancel()
            await asyncio.gather(self._clock, return_exceptions=True)
            self._clock = None

    def _abort_listeners(self) -> None:
        for listener in self._listeners:
            listener.abort()


def bind(endpoint: ListenEndpoint) -> socket.socket:
    """Return a listening socket. An unspecified address binds all interfaces, dual-stack where possible."""
    if endpoint.listener is not None:
        return endpoint.listener.dup()
    everything = endpoint.host in ("", "0.0.0.0", "::")
    both = everything and socket.has_dualstack_ipv6()
    host = "::" if both else endpoint.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.create_server(
        (host, endpoint.port),
        family=family,
        backlog=BACKLOG,
        reuse_port=endpoint.reuse_port,
        dualstack_ipv6=both,
    )
    sock.setblocking(False)
    return sock


def insecure_endpoint(host: str, port: int) -> ListenEndpoint:
    """Return the endpoint. Raises ValueError for non-loopback addresses."""
    if not (host == "localhost" or ipaddress.ip_address(host).is_loopback):
        raise ValueError(f"plain HTTP is served on loopback addresses only, not on {host}")
    return ListenEndpoint("127.0.0.1" if host == "localhost" else host, port)
