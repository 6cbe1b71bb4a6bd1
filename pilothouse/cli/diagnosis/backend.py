"""Checks of one backend address: TCP, certificate, TLS verification and discovery."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pilothouse.aggregator.availability.checks import TIMEOUT, send_probe
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportUnusable
from pilothouse.apiserver.outbound import failures
from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundResponse, read_answer
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.cli.diagnosis.answers import DiscoveryRequest, judge, served_groups, too_slow
from pilothouse.cli.diagnosis.findings import Finding, FindingOutcome, failed, note, ok
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


_MAX_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class BackendServer:
    """One backend address. `identified`: the transport has the aggregator's client certificate, so a 401 or 403 is a
    fault.
    """

    target: Target
    transport: ProxyTransport
    identified: bool
    wanted: GroupVersion

    async def examine(self) -> AsyncIterator[Finding]:
        """Yield the findings. Stops at the first failure that makes later steps pointless."""
        tcp = await self._tcp()
        yield tcp
        if tcp.outcome is FindingOutcome.FAILED:
            return
        certificate = await self._certificate()
        if certificate is not None:
            yield certificate
        trusted = await self._trusted()
        yield trusted
        if trusted.outcome is not FindingOutcome.FAILED:
            yield await self._discovery()

    async def _tcp(self) -> Finding:
        began = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT):
                _, writer = await asyncio.open_connection(self.target.host, self.target.port)
        except OSError as error:
            advice = f"start the server on port {self.target.port}, and open the network path from this machine"
            return failed("tcp", failures.dial_problem(error, self.target), advice)
        writer.close()
        return ok("tcp", f"{self.target.authority} accepts connections ({(time.monotonic() - began) * 1000:.1f} ms)")

    async def _certificate(self) -> Finding | None:
        """Return a finding about the server's certificate, whether trusted or not; None without a connection."""
        try:
            async with asyncio.timeout(TIMEOUT):
                _, writer = await asyncio.open_connection(
                    self.target.host,
                    self.target.port,
                    ssl=unverified_context(),
                    server_hostname=self.target.server_name,
                )
        except (OSError, TimeoutError):
            return None  # the next step reports the problem
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return describe_certificate(der)

    async def _trusted(self) -> Finding:
        target, config = self.target, self.transport.config
        try:
            pool = await self.transport.pool()
            pool.give_back(target, await pool.take(replace(target, timeout=TIMEOUT)))
        except TransportUnusable as error:
            return failed("tls", str(error), "set spec.caBundle to certificates in PEM format")
        except failures.DialFailed as error:
            return explain_tls_failure(error, config.ca_bundle, TIMEOUT)
        if config.insecure:
            return note("tls", "every certificate is accepted: spec.insecureSkipTLSVerify is set", "use spec.caBundle")
        return ok("tls", f"the certificate is valid for {target.server_name}")

    async def _discovery(self) -> Finding:
        began, url = time.monotonic(), self.target.url
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._ask(self.target)
                seconds = time.monotonic() - began
                others = (
                    served_groups(await self._ask(replace(self.target, path="/apis"))) if answer.status == 404 else ()
                )
        except TimeoutError:
            return too_slow("discovery", url, TIMEOUT)
        except (failures.BackendFailed, AnswerTooLarge) as error:
            return failed("discovery", f"{url}: {error}", "check the log of the server: it must answer the aggregator")
        return judge(answer, DiscoveryRequest(url, self.wanted, seconds, self.identified), others)

    async def _ask(self, target: Target) -> OutboundResponse:
        """Send a discovery request. Raises BackendFailed, AnswerTooLarge."""
        connection = await (await self.transport.pool()).take(target)
        try:
            send_probe(connection, target)
            return await read_answer(connection, await connection.head(), limit=_MAX_BYTES)
        finally:
            connection.close()


_RENEW = "renew the certificate of the server, and restart the server if it does not reload certificates"
_SOON = timedelta(days=14)
_SPEAKS_TLS = "check that the server runs and serves TLS on this port"


def describe_certificate(der: bytes) -> Finding:
    """Report the certificate: names, issuer, expiry."""
    from cryptography import x509

    certificate = x509.load_der_x509_certificate(der)
    signed = f"certificate for {_names(certificate)}; signed by {certificate.issuer.rfc4514_string()}"
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left < timedelta():
        return failed(
            "certificate", f"{signed}; expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC", _RENEW
        )
    text = f"{signed}; until {certificate.not_valid_after_utc:%Y-%m-%d}"
    return note("certificate", text, _RENEW) if left < _SOON else ok("certificate", text)


def explain_tls_failure(error: failures.DialFailed, ca_bundle: str, timeout: float) -> Finding:
    """Explain why the aggregator's TLS connection fails, with the next step."""
    if isinstance(error.cause, TimeoutError):
        return failed("tls", f"no handshake within {timeout:g} s", _SPEAKS_TLS)
    if not isinstance(error.cause, ssl.SSLCertVerificationError):
        return failed("tls", str(error), _SPEAKS_TLS)
    if failures.is_out_of_time(error.cause):
        return failed("tls", str(error), _RENEW)
    if failures.is_other_name(error.cause):
        return failed("tls", str(error), f"issue the server a certificate for the name {error.target.server_name}")
    advice = f"set spec.caBundle to the CA that signed the server's certificate; {_describe_bundle(ca_bundle)}"
    return failed("tls", str(error), advice)


def _describe_bundle(ca_bundle: str) -> str:
    from cryptography import x509

    if not ca_bundle:
        return "it is empty, so the aggregator trusts the CAs of its machine"
    certificates = x509.load_pem_x509_certificates(base64.b64decode(ca_bundle))
    return f"currently: {', '.join(certificate.subject.rfc4514_string() for certificate in certificates)}"


def _names(certificate: Certificate) -> str:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "no name: the certificate has no subject alternative names"
    return ", ".join(str(name.value) for name in names) or "nobody"
