"""HTTP/2 connections to an address. A new connection is dialed only at capacity, once for all waiting callers."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.dialing import Dialer
from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.http2_connection import Http2BackendConnection
from pilothouse.apiserver.outbound.targets import Target


class SharedConnections:
    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._connections: list[Http2BackendConnection] = []  # oldest first
        self._dialing: asyncio.Task[Http2BackendConnection | None] | None = None
        self._closed = False

    async def take(self, target: Target, *, fresh: bool) -> BackendExchange | None:
        """Return an exchange, or None if the server no longer speaks HTTP/2. A failed dial raises DialFailed for all
        waiting callers, without further attempts."""
        since = asyncio.get_running_loop().time() if fresh else 0.0
        while (found := self._with_room(since)) is None:
            dialing = self._dialing
            if dialing is None:
                made = await asyncio.shield(self._begin_dialing(target))
                return None if made is None else made.stream()  # even without capacity: never dial twice
            if await asyncio.shield(dialing) is None:
                return None
        return found.stream()

    def _begin_dialing(self, target: Target) -> asyncio.Task[Http2BackendConnection | None]:
        dialing = self._dialing = asyncio.create_task(self._dial(target))
        dialing.add_done_callback(self._dialed)
        return dialing

    async def _dial(self, target: Target) -> Http2BackendConnection | None:
        made = await self._dialer.dial(target)
        if isinstance(made, BackendConnection):
            made.close()
            return None
        self.add(made)
        return made

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
        self._connections = [each for each in self._connections if each.open or not each.idle]
        return bool(self._connections)

    def close(self) -> None:
        self._closed = True
        for connection in self._connections:
            connection.close()
