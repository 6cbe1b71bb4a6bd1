"""Client TLS contexts, as strict as Go: accept CAs without key identifiers, and trusted leaf certificates."""

from __future__ import annotations

import ssl

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
