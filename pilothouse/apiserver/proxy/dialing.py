"""New connections to another server, in the protocol that the handshake settles."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl

from pilothouse.apiserver.proxy.connection import BackendConnection
from pilothouse.apiserver.proxy.http2.connection import Http2BackendConnection
from pilothouse.apiserver.proxy.targets import Target
from pilothouse.apiserver.serving.keep_alive import keep_alive

_KEEP_ALIVE = 30


async def dial(target: Target, tls: ssl.SSLContext, server_name: str) -> BackendConnection | Http2BackendConnection:
    """Raises OSError, TimeoutError."""
    loop = asyncio.get_running_loop()
    connecting = loop.create_connection(
        lambda: _Negotiation(loop),
        target.connect_host,
        target.connect_port,
        ssl=tls,
        server_hostname=server_name,
        ssl_handshake_timeout=target.timeout,
    )
    transport, negotiation = await asyncio.wait_for(connecting, target.timeout)
    connected: socket.socket | None = transport.get_extra_info("socket")
    if connected is None:  # the other side has gone already
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    keep_alive(connected, _KEEP_ALIVE)
    return negotiation.settled


class _Negotiation(asyncio.Protocol):
    """Stands in until the handshake has settled the protocol."""

    settled: BackendConnection | Http2BackendConnection

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        http2 = transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        self.settled = (Http2BackendConnection if http2 else BackendConnection)(self._loop)
        transport.set_protocol(self.settled)
        self.settled.connection_made(transport)
