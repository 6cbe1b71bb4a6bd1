"""Client certificates: maps common name and organizations of a currently valid certificate to a user.

Unverified and expired certificates, and certificates of a removed CA, are rejected even on open connections. Other
credentials may still succeed. TLS also trusts the request-header CA: its certificates name no user, and are rejected
without other credentials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from pilothouse.apiserver.authn.authorities import Authorities
from pilothouse.apiserver.authn.interface import InvalidIdentity, identity
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.serving.client_certificate import ClientCertificate, client_certificate
from pilothouse.apiserver.tallies import REGISTRY, HistogramTally
from pilothouse.machinery import server_time
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.errors import Unauthorized

_HOUR, _DAY = 3600, 86400
_EXPIRATION = HistogramTally(
    "apiserver_client_certificate_expiration_seconds",
    "[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    (),
    bounds=(
        *(0, _HOUR / 2, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY),
        *(30 * _DAY, 90 * _DAY, 180 * _DAY, 360 * _DAY),
    ),
    registry=REGISTRY,
).row(())


class X509Authenticator:
    def __init__(self, authorities: Authorities, *, clock: Callable[[], float] = server_time.wall) -> None:
        """`authorities`: the client CAs."""
        self._authorities = authorities
        self._clock = clock
        self._users: BoundedCache[bytes, User] = BoundedCache(entries=4096, total_bytes=16 << 20)  # by certificate

    async def authenticate(self, request: Request) -> User | None:
        if request.transport is None:
            return None
        certificate = client_certificate(request.transport)
        if certificate is None:
            return None
        now = self._clock()
        if certificate.verified:
            _EXPIRATION.observe(certificate.not_after - now)
        if not certificate.issued_under(self._authorities(), now):
            raise Unauthorized
        return self._users.get(certificate.der) or self._user(certificate)

    def _user(self, certificate: ClientCertificate) -> User | None:
        """Raises Unauthorized."""
        if not certificate.common_name:
            return None
        try:
            user = identity(
                certificate.common_name,
                uid=certificate.uid if enabled("AllowParsingUserUIDFromCertAuth") else "",
                groups=(*certificate.organizations, ALL_AUTHENTICATED),
                extra={
                    "authentication.kubernetes.io/credential-id": (
                        f"X509SHA256={hashlib.sha256(certificate.der).hexdigest()}",
                    )
                },
            )
        except InvalidIdentity:
            raise Unauthorized from None
        self._users.put(certificate.der, user, size=2 * len(certificate.der))
        return user
