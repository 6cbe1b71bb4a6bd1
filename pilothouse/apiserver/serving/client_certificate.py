"""The client certificate, parsed once per connection.

TLS verifies the certificate against the client CAs, and proceeds without success where possible (`openssl.py`). Expiry
and trust in the CA may change, and are checked per request.
"""

from __future__ import annotations

import _ssl
import asyncio
import ssl
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

from pilothouse.apiserver.serving.openssl import LenientConnection
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass

UID_OID: Final = "1.3.6.1.4.1.57683.2"
"""Kubernetes' subject attribute of a user's UID."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    common_name: str
    organizations: tuple[str, ...]
    uid: str
    not_after: float
    """End of the certificate's validity, in seconds since the epoch."""
    chain: tuple[bytes, ...]
    """DER, from the client's certificate to the verifying CA."""
    chain_valid: tuple[float, float]
    """Validity period of the whole chain, in seconds since the epoch."""

    @property
    def der(self) -> bytes:
        return self.chain[0]

    @property
    def verified(self) -> bool:
        return bool(self.chain)

    def issued_under(self, authorities: frozenset[bytes], now: float) -> bool:
        """Return whether the chain is currently valid and includes a CA (DER) of `authorities`. TLS trusts client CAs
        and request-header CAs alike."""
        not_before, not_after = self.chain_valid
        return not_before <= now <= not_after and not authorities.isdisjoint(self.chain)


UNVERIFIED: Final = ClientCertificate("", (), "", 0.0, (), (0.0, 0.0))
"""Placeholder for an unverified certificate, without any contents."""


class _Unread(Enum):
    UNREAD = 0


UNREAD: Final = _Unread.UNREAD
KnownCertificate: TypeAlias = ClientCertificate | Literal[_Unread.UNREAD] | None


class _Connection(Protocol):
    certificate: KnownCertificate


def client_certificate(transport: asyncio.Transport | None) -> ClientCertificate | None:
    """Return the peer's certificate, or None; cached per connection."""
    if transport is None:
        return None
    connection: _Connection = transport.get_protocol()  # type: ignore[assignment]  # one of ours
    certificate = connection.certificate
    if certificate is UNREAD:
        certificate = connection.certificate = _read(transport.get_extra_info("ssl_object"))
    return certificate


def _read(ssl_object: ssl.SSLObject | None) -> ClientCertificate | None:
    if ssl_object is None or not ssl_object.getpeercert(binary_form=True):
        return None
    if isinstance(ssl_object, LenientConnection) and not ssl_object.verified:
        return UNVERIFIED
    # The public method of Python 3.13 returns bytes only.
    chain: list[_ssl.Certificate] = ssl_object._sslobj.get_verified_chain() or []  # type: ignore[attr-defined]
    try:
        return _read_verified(chain)
    except (ssl.SSLError, ValueError):  # some certificate strings are undecodable
        return UNVERIFIED


def _read_verified(chain: list[_ssl.Certificate]) -> ClientCertificate:
    """Parse the chain. Raises SSLError or ValueError."""
    infos: list[Any] = [certificate.get_info() for certificate in chain]
    subject = [attribute for rdn in infos[0].get("subject", ()) for attribute in rdn]
    begins, ends = ([_seconds(info[key]) for info in infos] for key in ("notBefore", "notAfter"))
    return ClientCertificate(
        common_name=_last(subject, "commonName"),
        organizations=tuple(value for name, value in subject if name == "organizationName"),
        uid=_last(subject, UID_OID),
        not_after=ends[0],
        chain=tuple(certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain),
        chain_valid=(max(begins), min(ends)),
    )


# CA dates repeat, and parsing a date costs 10 µs.
_seconds = bounded_cache(entries=1024, key_bytes=64)(ssl.cert_time_to_seconds)


def _last(subject: Iterable[tuple[str, str]], wanted: str) -> str:
    """Return the last value of a subject attribute, as in Go."""
    found = ""
    for name, value in subject:
        if name == wanted:
            found = value
    return found
