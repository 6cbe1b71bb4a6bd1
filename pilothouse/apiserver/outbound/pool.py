"""Connection pool for the addresses of a server.

HTTP/2 requests share connections. Each HTTP/1.1 request in progress has its own connection; the youngest idle
connection is reused first, and old connections close.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Final

from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.dialing import Dialer, Locate
from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.http2_connection import Http2BackendConnection
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.machinery.dataclass import dataclass

_MAX_IDLE: Final = 25  # per address
_IDLE_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: BackendConnection
    since: float


class ConnectionPool:
    _idle: dict[tuple[str, int], deque[_Idle]]  # address → idle connections, oldest first
    _shared: dict[tuple[str, int], SharedConnections]  # HTTP/2 connections by address

    def __init__(
        self,
        tls: ssl.SSLContext,
        server_name: str = "",
        *,
        locate: Locate | None = None,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self._dialer = Dialer(tls, server_name, locate)
        self._idle_seconds = idle_seconds
        self._idle, self._shared = {}, {}
        self._closed = False
        self._sweeper: asyncio.TimerHandle | None = None

    async def take(self, target: Target, *, fresh: bool = False) -> BackendExchange:
        """Return an exchange, with `fresh` on a new connection. The caller must give back or close the exchange. Raises
        DialFailed."""
        address = (target.host, target.connect_port)
        if (shared := self._shared.get(address)) is not None:
            exchange = await shared.take(target, fresh=fresh)
            if exchange is not None:
                return exchange
            self._shared.pop(address, None)  # the server no longer speaks HTTP/2
        idle = self._idle.get(address)
        while idle and not fresh:
            reused = idle.pop().connection
            if reused.reusable:
                return reused
        connection = await self._dialer.dial(target)
        if isinstance(connection, BackendConnection):
            return connection
        exchange = connection.stream()
        if self._closed:
            connection.close()
        else:
            self._share(target, connection)
        return exchange

    def _share(self, target: Target, connection: Http2BackendConnection) -> None:
        address = (target.host, target.connect_port)
        shared = self._shared.get(address)
        if shared is None:
            shared = self._shared[address] = SharedConnections(self._dialer)
        shared.add(connection)
        self._sweep_later(self._idle_seconds)

    def give_back(self, target: Target, exchange: BackendExchange) -> None:
        """Keep a reusable connection, and close others."""
        exchange.forget()
        if not isinstance(exchange, BackendConnection):
            exchange.close()
            return
        idle = self._idle.setdefault((target.host, target.connect_port), deque())
        if self._closed or not exchange.reusable or len(idle) >= _MAX_IDLE:
            exchange.close()
            return
        idle.append(_Idle(exchange, asyncio.get_running_loop().time()))
        self._sweep_later(self._idle_seconds)

    def _sweep_later(self, seconds: float) -> None:
        if self._sweeper is None and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        before = asyncio.get_running_loop().time() - self._idle_seconds
        for address, idle in list(self._idle.items()):
            while idle and (idle[0].since <= before or not idle[0].connection.reusable):
                idle.popleft().connection.close()
            if not idle:
                del self._idle[address]
        for address, shared in list(self._shared.items()):
            if not shared.sweep(before):
                del self._shared[address]
        if self._idle or self._shared:
            self._sweep_later(self._idle_seconds / 3)

    def close(self) -> None:
        """Close idle connections; connections in use close when given back."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for idle in self._idle.values():
            for unused in idle:
                unused.connection.close()
        for shared in self._shared.values():
            shared.close()
        self._idle.clear()
        self._shared.clear()


class SharedConnections:
    """HTTP/2 connections to an address. A new connection is dialed only at capacity, once for all waiting callers."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._connections: list[Http2BackendConnection] = []  # oldest first
        self._dialing: asyncio.Task[Http2BackendConnection | None] | None = None
        self._closed = False

    async def take(self, target: Target, *, fresh: bool) -> BackendExchange | None:
        """Return an exchange, or None if the server no longer speaks HTTP/2. A failed dial raises DialFailed for all
        waiting callers, without further attempts."""
        since = asyncio.get_running_loop().time() if fresh else 0.0
        while (available := self._with_room(since)) is None:
            dialing = self._dialing
            if dialing is None:
                dialed = await asyncio.shield(self._begin_dialing(target))
                return None if dialed is None else dialed.stream()  # even without capacity: never dial twice
            if await asyncio.shield(dialing) is None:
                return None
        return available.stream()

    def _begin_dialing(self, target: Target) -> asyncio.Task[Http2BackendConnection | None]:
        dialing = self._dialing = asyncio.create_task(self._dial(target))
        dialing.add_done_callback(self._dialed)
        return dialing

    async def _dial(self, target: Target) -> Http2BackendConnection | None:
        connection = await self._dialer.dial(target)
        if isinstance(connection, BackendConnection):
            connection.close()
            return None
        self.add(connection)
        return connection

    def _dialed(self, dialing: asyncio.Task[Http2BackendConnection | None]) -> None:
        self._dialing = None
        if not dialing.cancelled():
            dialing.exception()  # mark as retrieved: all callers may be gone

    def add(self, connection: Http2BackendConnection) -> None:
        self._connections.append(connection)
        if self._closed:
            connection.close()

    def _with_room(self, made_since: float = 0.0) -> Http2BackendConnection | None:
        for connection in self._connections:
            if connection.available and connection.made >= made_since:
                return connection
        return None

    def sweep(self, before: float) -> bool:
        """Close connections idle since `before`. Returns False if no connection is left."""
        for connection in self._connections:
            if connection.idle and connection.idle_since <= before:
                connection.close()
        self._connections = [connection for connection in self._connections if connection.open or not connection.idle]
        return bool(self._connections)

    def close(self) -> None:
        self._closed = True
        for connection in self._connections:
            connection.close()
