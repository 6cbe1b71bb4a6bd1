"""The faults of certificates that are already there."""

from __future__ import annotations


class CertificateError(Exception):
    """The files do not fit together, and making new ones would break what relies on them."""
