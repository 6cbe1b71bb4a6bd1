"""For whom a server's certificate is, when it is not for whom it was asked: what Go's net/http client says then."""

from __future__ import annotations

import asyncio
import ipaddress

from pilothouse.apiserver.outbound.failures import DialFailed, certificate_problem, is_no_tls, is_other_name
from pilothouse.apiserver.outbound.tls import unverified_context


async def client_problem(error: DialFailed) -> str:
    """Why a request could not be made. A certificate for somebody else is looked at once more, since the handshake
    that failed did not keep it."""
    if is_no_tls(error.cause):
        return "http: server gave HTTP response to HTTPS client"
    if not is_other_name(error.cause):
        return str(error)
    target = error.target
    shown = await _certificate_of(target.connect_host, target.connect_port)
    return certificate_problem(_problem(shown, target.server_name or target.host))


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
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=unverified_context())
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
