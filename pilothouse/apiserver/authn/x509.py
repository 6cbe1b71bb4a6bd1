"""Client certificates: common name and organizations of a certificate that the TLS handshake has verified."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.serving.client_certificate import ClientCertificate, client_certificate


class X509Authenticator:
    async def authenticate(self, request: Request) -> User | None:
        if request.transport is None:
            return None
        certificate = client_certificate(request.transport)
        if certificate is None or not certificate.common_name:
            return None
        return _user(certificate)


# A connection's certificate is asked about with every request.
@lru_cache(maxsize=4096)
def _user(certificate: ClientCertificate) -> User:
    return User(
        certificate.common_name,
        uid=certificate.uid,
        groups=(*certificate.organizations, ALL_AUTHENTICATED),
        extra={
            "authentication.kubernetes.io/credential-id": (f"X509SHA256={hashlib.sha256(certificate.der).hexdigest()}",)
        },
    )
