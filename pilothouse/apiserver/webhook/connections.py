"""The connections to one endpoint. A service is resolved anew for each of them, so that they spread over its pods."""

from __future__ import annotations

import asyncio
import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.webhook.endpoint import Endpoint, ServiceReference, tls_context
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver

if TYPE_CHECKING:
    import aiohttp

_IDLE = 30.0
"""Seconds after which a connection that nobody uses is closed."""


class Attempt:
    """What is known about the connection that carries one request."""

    def __init__(self) -> None:
        self.dialled = ""
        self.reused = False


attempt: ContextVar[Attempt] = ContextVar("attempt")


class _Resolver:
    """The contract is aiohttp's, which asks it for hosts that are no IP addresses."""

    def __init__(self, services: ServiceResolver, service: ServiceReference | None) -> None:
        self._services = services
        self._service = service

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[Any]:
        """Raises ServiceUnresolved, OSError."""
        if self._service is not None:
            found = await self._services.resolve(self._service.namespace, self._service.name, self._service.port)
            host, port = found.host, found.port
        attempt.get().dialled = host
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [
            {"hostname": host, "host": info[4][0], "port": info[4][1], "family": info[0], "proto": info[2], "flags": 0}
            for info in infos
        ]

    async def close(self) -> None:
        """Holds nothing."""


def open_session(
    endpoint: Endpoint, services: ServiceResolver, client_certificate: bytes = b""
) -> aiohttp.ClientSession:
    """Raises WebhookCallFailed."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        ssl=tls_context(endpoint.authorities, client_certificate),
        resolver=_Resolver(services, endpoint.service),  # type: ignore[arg-type]
        use_dns_cache=False,
        limit=0,
        keepalive_timeout=_IDLE,
        socket_factory=_socket,
    )
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_note_reuse)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[tracing])


def _socket(info: Any) -> socket.socket:
    family, kind, protocol, _, address = info
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    attempt.get().dialled = f"{host}:{address[1]}"
    return socket.socket(family, kind, protocol)


async def _note_reuse(*_: Any) -> None:
    attempt.get().reused = True
