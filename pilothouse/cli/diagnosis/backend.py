"""One address of an API server: whether it takes connections, whom its certificate is for, and what it answers."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

from pilothouse.aggregator.availability.discovery_check import probe_status
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportUnusable
from pilothouse.apiserver.outbound.failures import BackendFailed, DialFailed, dial_problem
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.cli.diagnosis.findings import Finding, FindingOutcome, failed, note, ok
from pilothouse.machinery.dataclass import dataclass

_TIMEOUT = 5.0
_TRUST = "make spec.caBundle the CA of the server's certificate, and the certificate one for this name"
_SPEAKS_TLS = "does the server speak TLS on this port, and does it still work?"
_REFUSED = (
    "the server must believe front proxies of the CA in the ConfigMap extension-apiserver-authentication, "
    "and let system:masters read its discovery document"
)


@dataclass(frozen=True, slots=True)
class BackendServer:
    """`identified`: the transport has the front proxy's certificate, so that refusals mean something."""

    target: Target
    transport: ProxyTransport
    identified: bool

    async def examine(self) -> AsyncIterator[Finding]:
        """Ends at the first thing that makes the next one pointless."""
        tcp = await self._tcp()
        yield tcp
        if tcp.outcome is FindingOutcome.FAILED:
            return
        shown = await self._certificate()
        if shown is not None:
            yield shown
        trusted = await self._trusted()
        yield trusted
        if trusted.outcome is not FindingOutcome.FAILED:
            yield await self._answer()

    async def _tcp(self) -> Finding:
        began = time.monotonic()
        try:
            async with asyncio.timeout(_TIMEOUT):
                _, writer = await asyncio.open_connection(self.target.host, self.target.port)
        except OSError as error:
            advice = "is the server running, and can this machine reach its network?"
            return failed("tcp", dial_problem(error, self.target), advice)
        writer.close()
        return ok("tcp", f"{self.target.authority} takes connections ({_since(began)})")

    async def _certificate(self) -> Finding | None:
        """Return a finding about the server's certificate, whoever signed it; None if there is no connection."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                _, writer = await asyncio.open_connection(
                    self.target.host,
                    self.target.port,
                    ssl=unverified_context(),
                    server_hostname=self.target.server_name,
                )
        except (OSError, TimeoutError):
            return None  # the next step says what is wrong
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return _described(der)

    async def _trusted(self) -> Finding:
        target, config = self.target, self.transport.config
        try:
            pool = await self.transport.pool()
            pool.give_back(target, await pool.take(replace(target, timeout=_TIMEOUT)))
        except TransportUnusable as error:
            return failed("tls", str(error), _TRUST)
        except DialFailed as error:
            return _untrusted(error)
        if config.insecure:
            return note("tls", "any certificate is taken: spec.insecureSkipTLSVerify is set", "use spec.caBundle")
        return ok("tls", f"the certificate is good for {target.server_name}")

    async def _answer(self) -> Finding:
        pool, began = await self.transport.pool(), time.monotonic()
        connection = await pool.take(self.target)
        try:
            async with asyncio.timeout(_TIMEOUT):
                status = await probe_status(connection, self.target)
        except (BackendFailed, TimeoutError) as error:
            return failed("discovery", f"{self.target.url}: {error or 'no answer in time'}")
        finally:
            connection.close()
        text = f"{self.target.url} answers {status} ({_since(began)})"
        if 200 <= status < 300:
            return ok("discovery", text)
        if status in (401, 403) and not self.identified:
            return note("authentication", text, "give --proxy-client-cert-file and -key-file to ask as the aggregator")
        return failed("authentication" if status in (401, 403) else "discovery", text, _REFUSED)


def _untrusted(error: DialFailed) -> Finding:
    if isinstance(error.cause, ssl.SSLCertVerificationError):
        return failed("tls", str(error), f"{_TRUST}: {error.target.server_name}")
    if isinstance(error.cause, TimeoutError):
        return failed("tls", f"no handshake within {_TIMEOUT:g} s", _SPEAKS_TLS)
    return failed("tls", str(error), _SPEAKS_TLS)


def _described(der: bytes) -> Finding:
    from cryptography import x509

    certificate = x509.load_der_x509_certificate(der)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        listed = ", ".join(str(name.value) for name in names) or "nobody"
    except x509.ExtensionNotFound:
        listed = "nobody: it has no alternative names"
    until = certificate.not_valid_after_utc
    text = f"certificate for {listed}; signed by {certificate.issuer.rfc4514_string()}; until {until:%Y-%m-%d}"
    return failed("certificate", text, "it has expired") if until < datetime.now(UTC) else ok("certificate", text)


def _since(began: float) -> str:
    return f"{(time.monotonic() - began) * 1000:.1f} ms"
