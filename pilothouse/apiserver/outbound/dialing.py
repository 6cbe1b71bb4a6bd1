"""New connections, with the protocol negotiated in the TLS handshake."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.http2_connection import Http2BackendConnection
from pilothouse.apiserver.outbound.reaching import reach
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.limits import keep_alive
from pilothouse.machinery.dataclass import dataclass

_KEEP_ALIVE = 30

Connection: TypeAlias = BackendConnection | Http2BackendConnection
Locate: TypeAlias = Callable[[Target], Awaitable[Target]]
"""Resolve a target; called for each connection."""


@dataclass(frozen=True, slots=True)
class Dialer:
    """Dials with fixed TLS settings; without `tls`, in plain text."""

    tls: ssl.SSLContext | None
    server_name: str = ""
    """Expected name of the certificate; empty = the target's name."""
    locate: Locate | None = None

    async def dial(self, target: Target) -> Connection:
        """Connect to the target. Raises DialFailed, and the errors of `locate`."""
        located = await self.locate(target) if self.locate else target
        return await reach(replace(located, server_name=self.server_name or located.server_name), self._connect)

    async def _connect(self, place: Target) -> Connection:
        loop = asyncio.get_running_loop()
        transport, negotiation = await loop.create_connection(
            lambda: _Negotiation(loop),
            place.connect_host,
            place.connect_port,
            ssl=self.tls,
            server_hostname=place.server_name or place.host if self.tls else None,
            ssl_handshake_timeout=place.timeout if self.tls else None,
        )
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is None:  # the peer has already disconnected
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        keep_alive(connected, _KEEP_ALIVE)
        return negotiation.settled


class _Negotiation(asyncio.Protocol):
    """Placeholder protocol until the handshake has negotiated the protocol."""

    settled: Connection

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        http2 = tls is not None and tls.selected_alpn_protocol() == "h2"
        self.settled = (Http2BackendConnection if http2 else BackendConnection)(self._loop)
        transport.set_protocol(self.settled)
        self.settled.connection_made(transport)
