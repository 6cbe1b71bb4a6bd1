"""The certificate that a server shows, and why it is not believed."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pilothouse.apiserver.outbound.failures import DialFailed, is_other_name, is_out_of_time
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_RENEW = "renew the certificate of the server, and restart the server if it does not reload certificates"
_SOON = timedelta(days=14)
_SPEAKS_TLS = "check that the server runs and serves TLS on this port"


def described(der: bytes) -> Finding:
    """Whose certificate it is, whoever signed it."""
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


def untrusted(error: DialFailed, ca_bundle: str, timeout: float) -> Finding:
    """Why there is no TLS connection that the aggregator would use, and what to do."""
    if isinstance(error.cause, TimeoutError):
        return failed("tls", f"no handshake within {timeout:g} s", _SPEAKS_TLS)
    if not isinstance(error.cause, ssl.SSLCertVerificationError):
        return failed("tls", str(error), _SPEAKS_TLS)
    if is_out_of_time(error.cause):
        return failed("tls", str(error), _RENEW)
    if is_other_name(error.cause):
        return failed("tls", str(error), f"issue the server a certificate for the name {error.target.server_name}")
    advice = f"set spec.caBundle to the CA that signed the server's certificate; {_held(ca_bundle)}"
    return failed("tls", str(error), advice)


def _held(ca_bundle: str) -> str:
    from cryptography import x509

    if not ca_bundle:
        return "it is empty, so the aggregator trusts the CAs of its machine"
    held = x509.load_pem_x509_certificates(base64.b64decode(ca_bundle))
    return f"currently: {', '.join(each.subject.rfc4514_string() for each in held)}"


def _names(certificate: Certificate) -> str:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "no name: the certificate has no subject alternative names"
    return ", ".join(str(name.value) for name in names) or "nobody"
