"""Rotation of shared keys in three steps. Servers and clients must follow each step before the next.

    trust    create a new key; trust both keys; the old key issues
    issue    the new key issues; trust both keys
    retire   trust only the new key

The old CA also signs the new CA, so that clients that trust only the old CA accept the servers until `retire`.
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
    """The step is not possible now. The message names the possible step."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind of key: `trusted` certificates or public keys, issuing `key`, `next` issuing key."""

    trusted: str
    key: str
    next: str
    common_name: str = ""
    """Common name of a CA; empty for token keys."""


KINDS: Final[Mapping[str, Kind]] = {
    "ca": Kind("ca.crt", "ca.key", "ca-next.key", "kubernetes"),
    "front-proxy": Kind("front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-ca-next.key", "front-proxy-ca"),
    "service-account": Kind("sa.pub", "sa.key", "sa-next.key"),
}


def next_step(keys: SharedKeys, kind: Kind) -> str:
    """Return the only step that is possible now."""
    if kind.next in keys and keys[kind.next] != keys.get(kind.key):
        return "issue"
    return "retire" if len(blocks(keys[kind.trusted])) > 1 else "trust"


def trust(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Create and trust a new key. Raises RotationError."""
    _check(keys, kind, "trust")
    from pilothouse.controlplane.certificates.issue import key_pem, new_key, public_key_pem

    fresh = new_key()
    added = {kind.next: key_pem(fresh)}
    if not kind.common_name:
        return {**keys, **added, kind.trusted: keys[kind.trusted] + public_key_pem(fresh.public_key())}
    from cryptography import x509

    from pilothouse.controlplane.certificates.issue import certificate_pem, cross_signed, new_authority

    # Unique common names, because clients look up an issuer by name.
    id = x509.SubjectKeyIdentifier.from_public_key(fresh.public_key()).digest.hex()[:8]
    certificate = new_authority(f"{kind.common_name}-{id}", fresh)
    new_files = {kind.trusted: keys[kind.trusted] + certificate_pem(certificate)}
    if kind is KINDS["ca"]:
        new_files[CROSS] = certificate_pem(cross_signed(certificate, _authority(keys, kind)))
    return {**keys, **added, **new_files}


def issue(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Issue with the new key. Raises RotationError."""
    _check(keys, kind, "issue")
    return {name: content for name, content in keys.items() if name != kind.next} | {kind.key: keys[kind.next]}


def retire(keys: SharedKeys, kind: Kind) -> SharedKeys:
    """Trust only the issuing key. Raises RotationError."""
    _check(keys, kind, "retire")
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    from pilothouse.controlplane.certificates.issue import certificate_pem, public_key_pem

    trusted_pem = keys[kind.trusted]
    if kind.common_name:
        own = certificate_pem(_authority(keys, kind).certificate)
        trusted = [certificate_pem(certificate) for certificate in x509.load_pem_x509_certificates(trusted_pem)]
    else:
        own = public_key_pem(load_pem_private_key(keys[kind.key], password=None).public_key())
        trusted = [public_key_pem(load_pem_public_key(block)) for block in blocks(trusted_pem)]
    issuing, dropped = (own, [block for block in trusted if block != own])
    left_out = {CROSS} if kind is KINDS["ca"] else set()
    retired = {RETIRED: keys.get(RETIRED, b"") + b"".join(dropped)} if kind.common_name else {}
    return {name: content for name, content in keys.items() if name not in left_out} | retired | {kind.trusted: issuing}


STEPS: Final[Mapping[str, Callable[[SharedKeys, Kind], SharedKeys]]] = {
    "trust": trust,
    "issue": issue,
    "retire": retire,
}


def blocks(pem: bytes) -> list[bytes]:
    """Split a file into PEM blocks."""
    end = b"-----END "
    lines, pem_blocks, block = pem.splitlines(keepends=True), [], b""
    for line in lines:
        if block or line.startswith(b"-----BEGIN "):
            block += line
        if line.startswith(end):
            pem_blocks.append(block if block.endswith(b"\n") else block + b"\n")
            block = b""
    return pem_blocks


def _check(keys: SharedKeys, kind: Kind, step: str) -> None:
    if (possible := next_step(keys, kind)) != step:
        raise RotationError(f"the next step is {possible}, not {step}")


def _authority(keys: SharedKeys, kind: Kind) -> Authority:
    """Return the CA. Raises RotationError if its key is missing."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from pilothouse.controllers.certificates.authority import certificate_of
    from pilothouse.controlplane.certificates.issue import Authority

    if kind.key not in keys:
        raise RotationError(f"{kind.key} is not here: who has it must issue the new one")
    key = cast("Any", load_pem_private_key(keys[kind.key], password=None))
    return Authority(certificate_of(key, x509.load_pem_x509_certificates(keys[kind.trusted])), key)


def trusted(keys: SharedKeys, kind: Kind) -> Iterator[tuple[str, bool]]:
    """Yield (description, whether this key issues) for each trusted certificate or key."""
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
