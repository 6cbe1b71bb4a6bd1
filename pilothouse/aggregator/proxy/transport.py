"""The connections to the server behind one APIService, with the trust that the APIService asks for."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from typing import TYPE_CHECKING

from pilothouse.aggregator.proxy.client_certificate import ProxyClientCertificate
from pilothouse.apiserver.outbound.tls import unverified_context, verifying_context
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.ca_bundles import UNREADABLE_ROOTS, ca_bundle_problem

if TYPE_CHECKING:
    from pilothouse.apiserver.outbound.pool import ConnectionPool

DEFAULT_PORT = 443

_HTTP1 = ["http/1.1"]
_HTTP2 = ["h2", "http/1.1"]


class TransportUnusable(Exception):
    """No connection can be made with this CA bundle or client certificate."""


@dataclass(frozen=True, slots=True)
class TransportConfig:
    namespace: str
    service: str
    port: int
    ca_bundle: str = ""
    """Base64 of PEM, as it stands in the APIService; the system's roots where empty."""
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
    """Makes its TLS context when it is first used, and again when the client certificate has changed."""

    def __init__(self, config: TransportConfig, certificate: ProxyClientCertificate) -> None:
        self.config = config
        self._certificate = certificate
        self._made: _CurrentPool | None = None
        self._making = asyncio.Lock()

    async def pool(self) -> ConnectionPool:
        """Raises TransportUnusable."""
        return (await self._current()).pool

    async def tls(self) -> ssl.SSLContext:
        """Return the TLS context for connections that are not kept, and may be upgraded. Raises TransportUnusable."""
        return (await self._current()).tls

    async def _current(self) -> _CurrentPool:
        made = self._made
        if made is None or made.generation != self._certificate.generation:
            return await self._make()
        return made

    async def _make(self) -> _CurrentPool:
        # Imported for the first server behind an APIService, with all of HTTP/2: a start needs none of it.
        from pilothouse.apiserver.outbound.pool import ConnectionPool

        async with self._making:
            generation, made = self._certificate.generation, self._made
            if made is not None and made.generation == generation:
                return made
            try:
                tls = await asyncio.to_thread(self._context, _HTTP1)
                pooled = await asyncio.to_thread(self._context, _HTTP2)
            except (OSError, ValueError) as error:
                raise TransportUnusable(str(error)) from error
            self.close()
            self._made = _CurrentPool(generation, tls, ConnectionPool(pooled, self.config.server_name))
            return self._made

    def _context(self, protocols: list[str]) -> ssl.SSLContext:
        insecure = self.config.insecure
        context = unverified_context() if insecure else verifying_context(_pem(self.config.ca_bundle))
        context.set_alpn_protocols(protocols)
        self._certificate.load_into(context)
        return context

    def close(self) -> None:
        """Requests under way keep their connections."""
        if self._made is not None:
            self._made.pool.close()
            self._made = None


def _pem(bundle: str) -> str:
    """Raises ValueError in Go's words where there is no certificate in it."""
    try:
        pem = base64.b64decode(bundle)
    except binascii.Error:
        raise ValueError(UNREADABLE_ROOTS) from None
    if pem and (problem := ca_bundle_problem(pem)):
        raise ValueError(problem)
    return pem.decode("ascii", "replace")
