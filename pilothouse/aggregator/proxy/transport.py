"""Connections to one aggregated server, with the TLS settings of its APIService."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import time
from typing import TYPE_CHECKING

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.apiserver.outbound.tls import unverified_context, verifying_context
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.pem import UNREADABLE_ROOTS, ca_bundle_problem

if TYPE_CHECKING:
    from pilothouse.apiserver.outbound.pool import ConnectionPool


class ProxyClientCertificate:
    """`generation` increments when the files change; connections of an older generation must be replaced."""

    def __init__(self, pair: KeyPair | None = None, *, poll_seconds: float = 5.0) -> None:
        self._pair = pair
        self._poll_seconds = poll_seconds
        self._next_look = time.monotonic() + poll_seconds
        self._watch = FileWatch((pair.cert_file, pair.key_file) if pair else ())
        self._generation = 0

    @property
    def generation(self) -> int:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._poll_seconds
            self._generation += self._watch.changed()
        return self._generation

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the certificate into the context. Raises OSError."""
        if self._pair is not None:
            context.load_cert_chain(self._pair.cert_file, self._pair.key_file)


DEFAULT_PORT = 443

_HTTP1 = ["http/1.1"]
_HTTP2 = ["h2", "http/1.1"]


class TransportUnusable(Exception):
    """The CA bundle or client certificate is unusable."""


@dataclass(frozen=True, slots=True)
class TransportConfig:
    namespace: str
    service: str
    port: int
    ca_bundle: str = ""
    """Base64-encoded PEM from the APIService; empty = the system's roots."""
    insecure: bool = False

    @classmethod
    def of(cls, api_service: Json) -> TransportConfig:
        spec = api_service["spec"]
        service = spec["service"]
        return cls(
            service.get("namespace") or "",
            service.get("name") or "",
            service.get("port") or DEFAULT_PORT,
            spec.get("caBundle") or "",
            bool(spec.get("insecureSkipTLSVerify")),
        )

    @property
    def server_name(self) -> str:
        return f"{self.service}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class _CurrentPool:
    generation: int
    tls: ssl.SSLContext
    pool: ConnectionPool


class ProxyTransport:
    """Creates the TLS context on first use, and again after a change of the client certificate."""

    def __init__(self, config: TransportConfig, certificate: ProxyClientCertificate) -> None:
        self.config = config
        self._certificate = certificate
        self._made: _CurrentPool | None = None
        self._making = asyncio.Lock()

    async def pool(self) -> ConnectionPool:
        """Return the connection pool. Raises TransportUnusable."""
        return (await self._current()).pool

    async def tls(self) -> ssl.SSLContext:
        """Return the TLS context for unpooled connections, which may be upgraded. Raises TransportUnusable."""
        return (await self._current()).tls

    async def _current(self) -> _CurrentPool:
        pool = self._made
        if pool is None or pool.generation != self._certificate.generation:
            # Imported with the first remote APIService, because the import brings all of HTTP/2.
            from pilothouse.apiserver.outbound.pool import ConnectionPool

            async with self._making:
                generation, pool = self._certificate.generation, self._made
                if pool is not None and pool.generation == generation:
                    return pool
                try:
                    tls = await asyncio.to_thread(self._context, _HTTP1)
                    pooled = await asyncio.to_thread(self._context, _HTTP2)
                except (OSError, ValueError) as error:
                    raise TransportUnusable(str(error)) from error
                self.close()
                self._made = _CurrentPool(generation, tls, ConnectionPool(pooled, self.config.server_name))
                return self._made
        return pool

    def _context(self, protocols: list[str]) -> ssl.SSLContext:
        insecure = self.config.insecure
        context = unverified_context() if insecure else verifying_context(_pem(self.config.ca_bundle))
        context.set_alpn_protocols(protocols)
        self._certificate.load_into(context)
        return context

    def close(self) -> None:
        """Close idle connections. Running requests keep theirs."""
        if self._made is not None:
            self._made.pool.close()
            self._made = None


def _pem(bundle: str) -> str:
    """Decode the bundle. Raises ValueError with Go's message if the bundle has no certificate."""
    try:
        pem = base64.b64decode(bundle)
    except binascii.Error:
        raise ValueError(UNREADABLE_ROOTS) from None
    if pem and (problem := ca_bundle_problem(pem)):
        raise ValueError(problem)
    return pem.decode("ascii", "replace")


class Transports:
    def __init__(self, certificate: ProxyClientCertificate | None = None) -> None:
        self._certificate = certificate or ProxyClientCertificate()
        self._transports: dict[TransportConfig, ProxyTransport] = {}

    def get(self, config: TransportConfig) -> ProxyTransport:
        transport = self._transports.get(config)
        if transport is None:
            transport = self._transports[config] = ProxyTransport(config, self._certificate)
        return transport

    def drop(self, config: TransportConfig) -> None:
        """Close the transport's idle connections. Running requests keep theirs; a later use creates a new transport."""
        transport = self._transports.pop(config, None)
        if transport is not None:
            transport.close()

    def close(self) -> None:
        for config in list(self._transports):
            self.drop(config)
