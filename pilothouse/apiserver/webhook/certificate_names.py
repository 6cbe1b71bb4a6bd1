"""For whom a server's certificate is, when it is not for whom it was asked: the text that Go gives for it."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl

_WRONG_NAME_CODES = (62, 64)
"""OpenSSL's codes for a host name and for an IP address that do not match."""


def is_wrong_name(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _WRONG_NAME_CODES


async def wrong_name_problem(dialled: str, wanted: str) -> str:
    """Looks at the certificate once more, since the handshake that failed did not keep it."""
    host, _, port = dialled.rpartition(":")
    certificate = await _certificate_of(host.strip("[]"), int(port))
    return f"tls: failed to verify certificate: x509: {_problem(certificate, wanted)}"


def _problem(certificate: bytes, wanted: str) -> str:
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


async def _certificate_of(host: str, port: int) -> bytes:
    """Empty when the server shows none now. Nothing is sent, so that nothing needs to be trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    except OSError:
        return b""
    shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return shown or b""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
