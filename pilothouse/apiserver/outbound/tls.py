"""Client TLS contexts, as strict as Go, and host name mismatches in the words of Go's crypto/x509.

The contexts accept CAs without key identifiers, and trusted leaf certificates.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl

from pilothouse.apiserver.outbound.targets import Target
from pilothouse.machinery.tls import verify_as_go


def verifying_context(authorities: str = "", *, file: str = "") -> ssl.SSLContext:
    """Trust the given PEM bundle or file, or the system's CAs without either. Raises OSError."""
    return verify_as_go(ssl.create_default_context(cadata=authorities or None, cafile=file or None))


def unverified_context() -> ssl.SSLContext:
    """Return a context without certificate verification."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hostname_problem(certificate: bytes, wanted: str) -> str:
    """Return crypto/x509's HostnameError for a DER certificate that does not match `wanted`."""
    from cryptography import x509

    try:
        loaded = x509.load_der_x509_certificate(certificate)
        names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        names = x509.SubjectAlternativeName([])
    if _is_address(wanted):
        valid = list(map(str, names.get_values_for_type(x509.IPAddress)))
        if not valid:
            return f"cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
    else:
        valid = names.get_values_for_type(x509.DNSName)
    if not valid:
        return f"certificate is not valid for any names, but wanted to match {wanted}"
    return f"certificate is valid for {', '.join(valid)}, not {wanted}"


async def certificate_of(target: Target) -> bytes:
    """Return the server's current certificate as DER; empty without a certificate.

    Unverified, but safe: no data is sent.
    """
    try:
        _, writer = await asyncio.open_connection(
            target.connect_host,
            target.connect_port,
            ssl=unverified_context(),
            server_hostname=target.server_name or target.host,
        )
    except OSError:
        return b""
    certificate: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return certificate or b""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
