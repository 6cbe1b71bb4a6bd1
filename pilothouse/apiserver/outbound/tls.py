"""Whom this server trusts when it connects to others: as strict as Go, which takes authorities without key identifiers,
and any certificate that is itself among those given.
"""

from __future__ import annotations

import ssl

from pilothouse.machinery.tls import verify_as_go


def verifying_context(authorities: str = "", *, file: str = "") -> ssl.SSLContext:
    """Trusts these authorities, in PEM, or those in a file, or without any the system's. Raises OSError."""
    return verify_as_go(ssl.create_default_context(cadata=authorities or None, cafile=file or None))


def unverified_context() -> ssl.SSLContext:
    """Takes whatever certificate is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
