"""Certificate verification with Go's rules, for all Python versions."""

from __future__ import annotations

import ssl


def verify_as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept CAs without key identifiers, and any certificate that is itself trusted. Return the context.

    Python 3.13 made `ssl.create_default_context` strict, which rejects certificates of many webhooks and test
    frameworks. Every Go client accepts these certificates.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
