"""Bundles of certificates in PEM, joined without doubles and without those that have expired."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from datetime import timedelta

from pilothouse.apiserver.authn.authorities import certificates_in
from pilothouse.machinery.times import Clock, system_clock

_SLACK = timedelta(minutes=5)


def join_bundles(found: str, own: Iterable[str], clock: Clock = system_clock) -> str:
    """The certificates that were found, and after them our own. Raises ValueError for what is no certificate."""
    ours = [cert for bundle in own for cert in certificates_in(bundle)]
    joined = dict.fromkeys([*certificates_in(found), *ours])
    kept = [cert for cert in joined if cert in ours or not _expired(cert, clock)]
    return "".join(map(ssl.DER_cert_to_PEM_cert, kept))


def _expired(certificate: bytes, clock: Clock) -> bool:
    """Needed for certificates of others only, and slow to import: a start on a new store does without."""
    from cryptography import x509

    return x509.load_der_x509_certificate(certificate).not_valid_after_utc < clock() - _SLACK
