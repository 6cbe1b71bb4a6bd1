"""Transport over HTTP/1.1 and HTTPS: credentials, a pool of connections, and proxies.

A write is sent once: after a broken connection nobody knows whether the write took effect. A read is sent again if the
server closed an idle connection at the same moment. Connections through a proxy use aiohttp, which is imported for
proxies only.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import socket
import ssl
from asyncio.staggered import staggered_race
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.credentials import credential_source, ssl_context
from pilothouse.client.config.model import ClientConfig, ConfigError, Credentials
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, RequestTimedOut
from pilothouse.client.rest.http1 import Connection
from pilothouse.client.rest.transport import HttpRequest, HttpResponse

CONNECT_TIMEOUT = 30.0
KEEPALIVE = 30  # seconds of silence before the kernel probes the peer
IDLE_TIMEOUT = 15.0
"""Seconds until an unused connection is closed."""
_NEXT_ADDRESS = 0.25  # seconds until the next address of a host is tried as well
SOCKS = ("socks5", "socks5h")
_READS = ("GET", "HEAD")
_DEFAULT_PORTS = {"https": 443, "http": 80}

HeaderFields: TypeAlias = list[tuple[str, str]]

OBSERVED_READS: ContextVar[set[str] | None] = ContextVar("targets of GET requests in this context", default=None)
"""A test that waits for a condition watches the objects that the condition reads."""


class Connections(Protocol):
    """Sends requests with complete headers to one server."""

    async def send(self, request: HttpRequest, headers: HeaderFields) -> HttpResponse: ...

    async def close(self) -> None: ...


class HttpTransport:
    """Sends each request with the configuration's credentials.

    Credentials are refreshed after the server rejects them. A new client certificate opens new connections.
    """

    def __init__(self, config: ClientConfig, clock: Clock = REAL_CLOCK) -> None:
        self._config = config
        self._source = credential_source(config, clock)
        self._connections: Connections | None = None
        self._connections_for: Credentials | None = None
        self._fixed_headers = fixed_headers(config)
        proxy = config.proxy_url
        if proxy and urlsplit(proxy).scheme not in ("http", "https", *SOCKS):
            raise ConfigError(f"unsupported scheme {urlsplit(proxy).scheme!r}, must be http, https, or socks5")
        self._proxy = proxy or _proxy_from_environment(config.host)

    async def send(self, request: HttpRequest) -> HttpResponse:
        if (reads := OBSERVED_READS.get()) is not None and request.method == "GET":
            reads.add(request.target)
        credentials = await self._source.get()
        connections = await self._connections_with(credentials)
        headers = [*self._headers(request.headers, credentials), *request.repeated_headers]
        response = await connections.send(request, headers)
        if response.status == 401:
            self._source.rejected(credentials)
        return response

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()
            self._connections = None

    def _headers(self, headers: Mapping[str, str], credentials: Credentials) -> HeaderFields:
        """Return the headers of a request; its own headers replace those of the configuration."""
        own = {name.lower(): value for name, value in headers.items()}
        fields = [field for field in self._fixed_headers if field[0] not in own]
        if credentials.token and "authorization" not in own:
            fields = [field for field in fields if field[0] != "authorization"]
            fields.append(("authorization", f"Bearer {credentials.token}"))
        return [*fields, *own.items()]

    async def _connections_with(self, credentials: Credentials) -> Connections:
        current, new = self._connections_for, credentials
        unchanged = current is not None and (current.cert_data, current.key_data) == (new.cert_data, new.key_data)
        if self._connections is None or not unchanged:
            await self.close()
            self._connections = self._new_connections(credentials)
            self._connections_for = credentials
        return self._connections

    def _new_connections(self, credentials: Credentials) -> Connections:
        config = self._config
        context = ssl_context(config.tls, credentials) if config.host.startswith("https:") else None
        if self._proxy:
            from pilothouse.client.rest.proxied import ProxiedConnections

            return ProxiedConnections(config, context, self._proxy)
        return DirectConnections(config, context)


class DirectConnections:
    """Connections to one server, without a limit on their number. The most recently used connection is reused first."""

    _idle: list[Connection]  # least recently used first

    def __init__(self, config: ClientConfig, context: ssl.SSLContext | None) -> None:
        url = urlsplit(config.host)
        default = _DEFAULT_PORTS.get(url.scheme)
        if default is None:
            raise ConfigError(f"unsupported scheme {url.scheme!r} of the host {config.host}, must be http or https")
        self._host, self._port = url.hostname or "", url.port or default
        self._prefix = url.path.rstrip("/")
        self._context = context
        self._server_name = (config.tls.server_name or self._host) if context is not None else None
        name = f"[{self._host}]" if ":" in self._host else self._host
        self._authority = name if self._port == default else f"{name}:{self._port}"
        self._open: set[Connection] = set()
        self._idle = []
        self._sweeping: asyncio.TimerHandle | None = None

    async def send(self, request: HttpRequest, headers: HeaderFields) -> HttpResponse:
        message = self._message(request, headers)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_closing:
                continue
            try:
                return await connection.send(request.method, message, request.timeout)
            except RequestTimedOut:
                raise
            except ConnectionFailed:
                if request.method not in _READS:
                    raise
                break
        connection, left = await self._connect(request.timeout)
        return await connection.send(request.method, message, left)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in [*self._open]:
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)

    def _message(self, request: HttpRequest, headers: HeaderFields) -> bytes:
        """Return the request as bytes. Raises ValueError for a target or header that contains a line break."""
        lines = [f"{request.method} {self._prefix}{request.target} HTTP/1.1", f"host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if request.body or request.method not in _READS:
            lines.append(f"content-length: {len(request.body)}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
            raise ValueError("a header or the target of the request contains a control character")
        if " " in request.target:
            raise ValueError(f"the target {request.target[:80]!r} contains a space: encode it as %20")
        return head.encode() + b"\r\n\r\n" + request.body

    async def _connect(self, timeout: float | None) -> tuple[Connection, float | None]:
        """Return a new connection, and the rest of the timeout. Raises ConnectionFailed."""
        limit = CONNECT_TIMEOUT if timeout is None else min(CONNECT_TIMEOUT, timeout)
        loop, to = asyncio.get_running_loop(), f"{self._host}:{self._port}"
        started = loop.time()
        try:
            async with asyncio.timeout(limit):
                sock = await connected_socket(self._host, self._port)
                _, connection = await loop.create_connection(
                    lambda: Connection(self._put_idle, self._open.discard),
                    sock=sock,
                    ssl=self._context,
                    server_hostname=self._server_name,
                )
        except TimeoutError as error:
            raise RequestTimedOut(f"cannot connect to {to} within {limit:g} s") from error
        except OSError as error:
            refused = error.errno == errno.ECONNREFUSED
            raise (ConnectionRefused if refused else ConnectionFailed)(f"cannot connect to {to}: {error}") from error
        self._open.add(connection)
        return connection, None if timeout is None else max(0.0, timeout - (loop.time() - started))

    def _put_idle(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(IDLE_TIMEOUT, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that were idle for too long."""
        self._sweeping = None
        loop = asyncio.get_running_loop()
        while self._idle and loop.time() - self._idle[0].idle_since >= IDLE_TIMEOUT:
            self._idle.pop(0).close()
        if self._idle:
            self._sweeping = loop.call_later(IDLE_TIMEOUT, self._sweep)


async def connected_socket(host: str, port: int) -> socket.socket:
    """Return a connected socket. Further addresses are tried while an earlier one does not answer. Raises OSError."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if len(addresses) == 1:
        return await _connect(addresses[0])
    winner: socket.socket | None
    winner, _, errors = await staggered_race([partial(_connect, address) for address in addresses], _NEXT_ADDRESS)
    if winner is not None:
        return winner
    raise next(error for error in errors if error is not None)


async def _connect(address: Any) -> socket.socket:
    """Connect with TCP keepalive: a dead peer is detected within two minutes, even on an idle watch."""
    family, kind, protocol, _, where = address
    sock = socket.socket(family=family, type=kind, proto=protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), KEEPALIVE)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def fixed_headers(config: ClientConfig) -> HeaderFields:
    """Return the headers common to all requests: impersonation, basic authentication, compression."""
    impersonate = config.impersonate
    headers = [("accept-encoding", "identity" if config.disable_compression else "gzip")]
    headers += [("impersonate-user", impersonate.user)] if impersonate.user else []
    headers += [("impersonate-uid", impersonate.uid)] if impersonate.uid else []
    headers += [("impersonate-group", group) for group in impersonate.groups]
    headers += [(f"impersonate-extra-{key}".lower(), value) for key, value in impersonate.extra]
    if config.username:
        basic = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        headers.append(("authorization", f"Basic {basic}"))
    return headers


def _proxy_from_environment(host: str) -> str | None:
    """Return the proxy of HTTP_PROXY, HTTPS_PROXY and NO_PROXY."""
    url = urlsplit(host)
    if url.hostname is None or proxy_bypass(url.netloc):
        return None
    return getproxies().get(url.scheme)
