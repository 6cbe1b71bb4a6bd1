"""The certificate that a client presented, read once per connection.

TLS has verified it against the client CAs already: a client whose certificate does not verify gets no connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.authn.user import User

UID_OID: Final = "1.3.6.1.4.1.57683.2"
"""Where Kubernetes looks for a user's UID in a subject."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    common_name: str
    organizations: tuple[str, ...]
    uid: str
    not_after: float
    """Seconds since the epoch."""
    chain: tuple[bytes, ...]
    """DER, from the client's certificate to the CA certificate that it was verified against."""
    users: dict[frozenset[bytes], User | None] = field(default_factory=dict, compare=False, repr=False)
    """Whom it was taken for, by the authorities that were trusted then: asked with every request of the connection."""

    @property
    def der(self) -> bytes:
        return self.chain[0]

    def issued_under(self, authorities: Iterable[bytes]) -> bool:
        """Whether one of these CAs (DER) stands in the chain. TLS trusts the CAs of users and of proxies alike."""
        return not set(self.chain).isdisjoint(authorities)


class _Unread(Enum):
    UNREAD = 0


UNREAD: Final = _Unread.UNREAD
KnownCertificate: TypeAlias = ClientCertificate | Literal[_Unread.UNREAD] | None


class _Connection(Protocol):
    certificate: KnownCertificate


def client_certificate(transport: asyncio.Transport | None) -> ClientCertificate | None:
    """The peer's certificate, or None where it gave none. Kept with the connection."""
    if transport is None:
        return None
    connection: _Connection = transport.get_protocol()  # type: ignore[assignment]  # one of ours
    certificate = connection.certificate
    if certificate is UNREAD:
        certificate = connection.certificate = _read(transport.get_extra_info("ssl_object"))
    return certificate


def _read(ssl_object: ssl.SSLObject | None) -> ClientCertificate | None:
    der = ssl_object.getpeercert(binary_form=True) if ssl_object is not None else None
    if ssl_object is None or not der:
        return None
    decoded: Mapping[str, Any] = ssl_object.getpeercert() or {}
    subject = [attribute for rdn in decoded.get("subject", ()) for attribute in rdn]
    return ClientCertificate(
        common_name=_last(subject, "commonName"),
        organizations=tuple(value for name, value in subject if name == "organizationName"),
        uid=_last(subject, UID_OID),
        not_after=ssl.cert_time_to_seconds(decoded["notAfter"]),
        chain=_verified_chain(ssl_object) or (der,),
    )


def _verified_chain(ssl_object: ssl.SSLObject) -> tuple[bytes, ...]:
    """Public since Python 3.13; before, it is there under the hood."""
    if hasattr(ssl_object, "get_verified_chain"):
        return tuple(ssl_object.get_verified_chain())
    chain = ssl_object._sslobj.get_verified_chain() or ()  # type: ignore[attr-defined]
    return tuple(ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in chain)


def _last(subject: Iterable[tuple[str, str]], wanted: str) -> str:
    """Where a subject has an attribute twice the last one counts, as in Go."""
    found = ""
    for name, value in subject:
        if name == wanted:
            found = value
    return found
