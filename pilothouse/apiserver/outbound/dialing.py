"""New connections to another server, in the protocol that the handshake settles."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from pilothouse.apiserver.outbound.connection import BackendConnection
from pilothouse.apiserver.outbound.failures import DialFailed
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.http2.connection import Http2BackendConnection
from pilothouse.apiserver.serving.keep_alive import keep_alive
from pilothouse.machinery.dataclass import dataclass

_KEEP_ALIVE = 30

Connection: TypeAlias = BackendConnection | Http2BackendConnection
Locate: TypeAlias = Callable[[Target], Awaitable[Target]]
"""Finds where a target is at this moment; asked anew for each connection."""


@dataclass(frozen=True, slots=True)
class Dialer:
    """Connections with one trust: plain ones without `tls`."""

    tls: ssl.SSLContext | None
    server_name: str = ""
    """Whom the certificate must be for, if not for the target's own name."""
    locate: Locate | None = None

    async def dial(self, target: Target) -> Connection:
        """Raises DialFailed, and what `locate` raises. The first address of a name that takes the connection has it;
        when none does, the first says why."""
        located = await self.locate(target) if self.locate else target
        place = replace(located, server_name=self.server_name or located.server_name)
        try:
            async with asyncio.timeout(place.timeout):
                return await self._dial_any(await _addresses(place))
        except OSError as error:
            raise DialFailed(error, place) from None

    async def _dial_any(self, places: list[Target]) -> Connection:
        first: DialFailed | None = None
        for place in places:
            try:
                return await self._connect(place)
            except OSError as error:
                first = first or DialFailed(error, place)
        assert first is not None
        raise first

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
        if connected is None:  # the other side has gone already
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        keep_alive(connected, _KEEP_ALIVE)
        return negotiation.settled


async def _addresses(target: Target) -> list[Target]:
    """The target at each of its addresses. Raises OSError."""
    try:
        ipaddress.ip_address(target.connect_host)
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(target.connect_host, target.connect_port, type=socket.SOCK_STREAM)
        return [replace(target, address=str(info[4][0])) for info in found]
    return [target]


class _Negotiation(asyncio.Protocol):
    """Stands in until the handshake, if there is one, has settled the protocol."""

    settled: Connection

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        http2 = tls is not None and tls.selected_alpn_protocol() == "h2"
        self.settled = (Http2BackendConnection if http2 else BackendConnection)(self._loop)
        transport.set_protocol(self.settled)
        self.settled.connection_made(transport)
