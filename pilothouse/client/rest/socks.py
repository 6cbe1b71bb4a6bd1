"""Connections through a SOCKS5 proxy (RFC 1928, username/password authentication of RFC 1929).

The proxy resolves names, as with Go's client for socks5 and socks5h.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from ipaddress import IPv4Address, ip_address
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

_VERSION, _NO_AUTHENTICATION, _PASSWORD, _CONNECT = 5, 0, 2, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_ADDRESS_SIZES = {_IPV4: 4, _IPV6: 16}
_FAILURES = (
    "succeeded",
    "general SOCKS server failure",
    "connection not allowed by ruleset",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "TTL expired",
    "command not supported",
    "address type not supported",
)


class SocksError(ConnectionError):
    """The proxy did not establish the connection; the message gives the proxy's reason."""


class SocksConnector(aiohttp.BaseConnector):
    """aiohttp connector through one proxy. Without a TLS context the connection is not encrypted."""

    def __init__(self, proxy_url: str, context: ssl.SSLContext | None, server_name: str = "") -> None:
        super().__init__(limit=0)
        self._proxy = urlsplit(proxy_url)
        self._context = context
        self._server_name = server_name

    async def _create_connection(self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout) -> ResponseHandler:
        host, port = req.url.raw_host, req.url.port
        name = (self._server_name or host) if self._context else None
        try:
            async with asyncio.timeout(timeout.sock_connect):
                sock = await connect_through(self._proxy, host, port)
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=sock, ssl=self._context, server_hostname=name
                )
        except TimeoutError:
            raise
        except OSError as error:
            by = f"socks5 proxy {self._proxy.hostname}"  # never its password
            raise aiohttp.ClientConnectionError(f"cannot connect to {host}:{port} by {by}: {error}") from error
        return protocol


async def connect_through(proxy: SplitResult, host: str, port: int) -> socket.socket:
    """Return a socket connected to the server through the proxy. Raises OSError, SocksError."""
    sock = await _connect(proxy.hostname or "", proxy.port or 1080)
    try:
        await _authenticate(sock, proxy)
        await asyncio.get_running_loop().sock_sendall(sock, bytes((_VERSION, _CONNECT, 0)) + _address(host, port))
        _, reply, _, kind = await _read(sock, 4)
        if reply:
            raise SocksError(_FAILURES[reply] if reply < len(_FAILURES) else f"unknown code: {reply}")
        size = (await _read(sock, 1))[0] if kind == _NAME else _ADDRESS_SIZES.get(kind, 0)
        await _read(sock, size + 2)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    [(family, kind, protocol, _, address), *_] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _authenticate(sock: socket.socket, proxy: SplitResult) -> None:
    """Negotiate the authentication method and authenticate."""
    methods = (_NO_AUTHENTICATION, _PASSWORD) if proxy.username else (_NO_AUTHENTICATION,)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, bytes((_VERSION, len(methods), *methods)))
    version, chosen = await _read(sock, 2)
    if version != _VERSION:
        raise SocksError(f"unexpected protocol version {version}")
    if chosen not in methods:
        raise SocksError("no acceptable authentication methods")
    if chosen == _PASSWORD:
        words = (unquote(word or "").encode() for word in (proxy.username, proxy.password))
        await loop.sock_sendall(sock, b"\x01" + b"".join(bytes((len(word),)) + word for word in words))
        if (await _read(sock, 2))[1]:
            raise SocksError("username/password authentication failed")


def _address(host: str, port: int) -> bytes:
    try:
        literal = ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes((_NAME, len(name))) + name + port.to_bytes(2)
    kind = _IPV4 if isinstance(literal, IPv4Address) else _IPV6
    return bytes((kind,)) + literal.packed + port.to_bytes(2)


async def _read(sock: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes, so that no byte of the server is consumed."""
    data = b""
    while len(data) < size:
        more = await asyncio.get_running_loop().sock_recv(sock, size - len(data))
        if not more:
            raise SocksError("the proxy closed the connection")
        data += more
    return data
