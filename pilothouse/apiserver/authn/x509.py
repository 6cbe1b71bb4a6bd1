"""Client certificates: common name and organizations of a certificate that the TLS handshake has verified.

TLS trusts the CAs of front proxies as well. A certificate of theirs names no user, and is wrong where it stands alone.
"""

from __future__ import annotations

import hashlib
import time

from pilothouse.apiserver.authn.authorities import Authorities
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.serving.client_certificate import ClientCertificate, client_certificate
from pilothouse.apiserver.tallies import HistogramTally
from pilothouse.machinery.errors import Unauthorized

_HOUR, _DAY = 3600, 86400
_EXPIRATION = HistogramTally(
    "apiserver_client_certificate_expiration_seconds",
    "Seconds that the certificates of clients had left when they were shown.",
    (),
    bounds=(
        *(0, _HOUR / 2, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY),
        *(30 * _DAY, 90 * _DAY, 180 * _DAY, 360 * _DAY),
    ),
    registry=REGISTRY,
).row(())


class X509Authenticator:
    def __init__(self, authorities: Authorities) -> None:
        """`authorities` are the CAs whose certificates are users."""
        self._authorities = authorities

    async def authenticate(self, request: Request) -> User | None:
        if request.transport is None:
            return None
        certificate = client_certificate(request.transport)
        if certificate is None:
            return None
        authorities = self._authorities()
        if authorities not in certificate.users:
            if not certificate.issued_under(authorities):
                raise Unauthorized
            certificate.users[authorities] = _user(certificate) if certificate.common_name else None
        _EXPIRATION.observe(certificate.not_after - time.time())
        return certificate.users[authorities]


def _user(certificate: ClientCertificate) -> User:
    return User(
        certificate.common_name,
        uid=certificate.uid,
        groups=(*certificate.organizations, ALL_AUTHENTICATED),
        extra={
            "authentication.kubernetes.io/credential-id": (f"X509SHA256={hashlib.sha256(certificate.der).hexdigest()}",)
        },
    )
