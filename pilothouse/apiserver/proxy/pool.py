"""Connections to the addresses of one backend, kept between requests: the youngest is used first, old ones close."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Final

from pilothouse.apiserver.proxy.connection import BackendConnection
from pilothouse.apiserver.proxy.targets import Target
from pilothouse.machinery.dataclass import dataclass

_MAX_IDLE: Final = 25  # per address
_IDLE_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: BackendConnection
    since: float


class ConnectionPool:
    _idle: dict[tuple[str, int], deque[_Idle]]  # by address, oldest first

    def __init__(self, tls: ssl.SSLContext, server_name: str) -> None:
        self._tls = tls
        self._server_name = server_name
        self._idle = {}
        self._closed = False
        self._sweeper: asyncio.TimerHandle | None = None

    async def take(self, target: Target, *, fresh: bool = False) -> BackendConnection:
        """One that nobody uses, or with `fresh` a new one. Raises OSError, TimeoutError."""
        idle = self._idle.get((target.host, target.connect_port))
        while idle and not fresh:
            found = idle.pop().connection
            if found.reusable:
                return found
        return await self._dial(target)

    async def _dial(self, target: Target) -> BackendConnection:
        loop = asyncio.get_running_loop()
        connecting = loop.create_connection(
            lambda: BackendConnection(loop),
            target.host,
            target.connect_port,
            ssl=self._tls,
            server_hostname=self._server_name,
            ssl_handshake_timeout=target.timeout,
        )
        _, protocol = await asyncio.wait_for(connecting, target.timeout)
        return protocol

    def give_back(self, target: Target, connection: BackendConnection) -> None:
        """Keeps the connection if it can be used again, and otherwise closes it."""
        idle = self._idle.setdefault((target.host, target.connect_port), deque())
        connection.forget()
        if self._closed or not connection.reusable or len(idle) >= _MAX_IDLE:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        idle.append(_Idle(connection, loop.time()))
        if self._sweeper is None:
            self._sweeper = loop.call_later(_IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = None
        for address, idle in list(self._idle.items()):
            while idle and (idle[0].since <= loop.time() - _IDLE_SECONDS or not idle[0].connection.reusable):
                idle.popleft().connection.close()
            if not idle:
                del self._idle[address]
        if self._idle:
            self._sweeper = loop.call_later(_IDLE_SECONDS / 3, self._sweep)

    def close(self) -> None:
        """Closes what is idle; what is in use is closed when it is given back."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for idle in self._idle.values():
            for each in idle:
                each.connection.close()
        self._idle.clear()
