"""The rotation of shared keys in three steps, each of which servers and clients follow before the next is taken.

    trust    a new key is made, and trusted beside the old one        issued with the old one
    issue    the new key issues                                       trusted are both
    retire   what the old key issued is believed no more              trusted is the new one

The new CA is also certified by the old one, so that clients who know only that believe the servers until it is retired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from pilothouse.controlplane.shared_keys.directory import CROSS, RETIRED, SharedKeys
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from cryptography import x509

    from pilothouse.controlplane.certificates.issue import Authority


class RotationError(Exception):
    """The step can not be taken now. The message says which can."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`trusted` and `key` are the files of what is believed and of what issues; `next` that of what will issue."""

    trusted: str
    key: str
    next: str
    common_name: str = ""
    """Of an authority; tokens need none."""


KINDS: Final[Mapping[str, Kind]] = {
    "ca": Kind("ca.crt", "ca.key", "ca-next.key", "kubernetes"),
    "front-proxy": Kind("front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-ca-next.key", "front-proxy-ca"),
    "service-account": Kind("sa.pub", "sa.key", "sa-next.key"),
}


def next_step(keys: SharedKeys, kind: Kind) -> str:
    """Return the step that can be taken."""
    if kind.next in keys and keys[kind.next] != keys.get(kind.key):
        return "issue"
    return "retire" if len(blocks(keys[kind.trusted])) > 1 else "trust"


def trust(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Raises RotationError."""
    _check(keys, kind, "trust")
    from pilothouse.controlplane.certificates.issue import key_pem, new_key, public_key_pem

    fresh = new_key()
    added = {kind.next: key_pem(fresh)}
    if not kind.common_name:
        return {**keys, **added, kind.trusted: keys[kind.trusted] + public_key_pem(fresh.public_key())}
    return {**keys, **added, **_new_authority(keys, kind, fresh)}


def issue(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Raises RotationError."""
    _check(keys, kind, "issue")
    return {name: content for name, content in keys.items() if name != kind.next} | {kind.key: keys[kind.next]}


def retire(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Raises RotationError."""
    _check(keys, kind, "retire")
    kept, dropped = _of_key(keys, kind)
    left_out = {CROSS} if kind is KINDS["ca"] else set()
    retired = {RETIRED: keys.get(RETIRED, b"") + b"".join(dropped)} if kind.common_name else {}
    return {name: content for name, content in keys.items() if name not in left_out} | retired | {kind.trusted: kept}


STEPS: Final[Mapping[str, Callable[[SharedKeys, Kind], SharedKeys]]] = {
    "trust": trust,
    "issue": issue,
    "retire": retire,
}


def blocks(pem: bytes) -> list[bytes]:
    """Return the single PEM blocks of a file."""
    end = b"-----END "
    lines, found, block = pem.splitlines(keepends=True), [], b""
    for line in lines:
        if block or line.startswith(b"-----BEGIN "):
            block += line
        if line.startswith(end):
            found.append(block if block.endswith(b"\n") else block + b"\n")
            block = b""
    return found


def _check(keys: SharedKeys, kind: Kind, step: str) -> None:
    if (possible := next_step(keys, kind)) != step:
        raise RotationError(f"the next step is {possible}, not {step}")


def _new_authority(keys: SharedKeys, kind: Kind, key: Any) -> SharedKeys:
    from cryptography import x509

    from pilothouse.controlplane.certificates.issue import certificate_pem, cross_signed, new_authority

    # Authorities of one name are hard to tell apart for those who look for the issuer of a certificate.
    id = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:8]
    certificate = new_authority(f"{kind.common_name}-{id}", key)
    made = {kind.trusted: keys[kind.trusted] + certificate_pem(certificate)}
    if kind is KINDS["ca"]:
        made[CROSS] = certificate_pem(cross_signed(certificate, _authority(keys, kind)))
    return made


def _authority(keys: SharedKeys, kind: Kind) -> Authority:
    """Raises RotationError for one whose key is elsewhere."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from pilothouse.controllers.certificates.authority import certificate_of
    from pilothouse.controlplane.certificates.issue import Authority

    if kind.key not in keys:
        raise RotationError(f"{kind.key} is not here: who has it must issue the new one")
    key = cast("Any", load_pem_private_key(keys[kind.key], password=None))
    return Authority(certificate_of(key, x509.load_pem_x509_certificates(keys[kind.trusted])), key)


def _of_key(keys: SharedKeys, kind: Kind) -> tuple[bytes, list[bytes]]:
    """Return the trusted block that belongs to the key, and the others."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    from pilothouse.controlplane.certificates.issue import certificate_pem, public_key_pem

    found = keys[kind.trusted]
    if kind.common_name:
        own = certificate_pem(_authority(keys, kind).certificate)
        trusted = [certificate_pem(each) for each in x509.load_pem_x509_certificates(found)]
    else:
        own = public_key_pem(load_pem_private_key(keys[kind.key], password=None).public_key())
        trusted = [public_key_pem(load_pem_public_key(block)) for block in blocks(found)]
    return own, [block for block in trusted if block != own]


def trusted(keys: SharedKeys, kind: Kind) -> Iterator[tuple[str, bool]]:
    """Yield what is believed, in words for people, and whether it is what issues."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    issuing = load_pem_private_key(keys[kind.key], password=None).public_key() if kind.key in keys else None
    for block in blocks(keys[kind.trusted]):
        if kind.common_name:
            certificate = x509.load_pem_x509_certificate(block)
            yield _named(certificate), certificate.public_key() == issuing
        else:
            public = load_pem_public_key(block)
            yield f"key {_fingerprint(block)}", public == issuing


def _named(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    fingerprint = _fingerprint(certificate.public_bytes(Encoding.DER))
    return f"{certificate.subject.rfc4514_string()} until {certificate.not_valid_after_utc:%Y-%m-%d}, {fingerprint}"


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
