"""Keys of PodCertificateRequests: accepted key types and proof of possession."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.field import OMIT_VALUE, Errors, Path, invalid, root, too_long
from pilothouse.machinery.objects import Json, text

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

MAX_KEY_SIZE = MAX_PROOF_SIZE = MAX_REQUEST_SIZE = 10 * 1024

_KEY = root("spec", "pkixPublicKey")
_PROOF = root("spec", "proofOfPossession")
_REQUEST = root("spec", "stubPKCS10Request")
_FIELDS = ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession")
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_RSA_BITS = (3072, 4096)
_UNKNOWN_TYPE = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
_BAD_RSA = "RSA keys must have modulus size 3072 or 4096"


def validate_keys(spec: Json) -> Errors:
    """Require exactly one of a PKCS#10 request, or a public key with a proof of possession."""
    request, key, proof = (base64.b64decode(text(spec, name)) for name in _FIELDS)
    if request and not key and not proof:
        yield from _validate_request(request)
    elif key and proof and not request:
        yield from _validate_key(key, proof, spec)
    else:
        reason = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        yield invalid(root("spec"), OMIT_VALUE, reason)


def public_key(spec: Json) -> Any:
    """Return the public key of a valid request."""
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    if request := text(spec, "stubPKCS10Request"):
        return _parse_request(base64.b64decode(request)).public_key()
    return load_der_public_key(base64.b64decode(text(spec, "pkixPublicKey")))


def _parse_request(request: bytes) -> CertificateSigningRequest:
    from cryptography.x509 import load_der_x509_csr

    return load_der_x509_csr(request)


def _validate_request(request: bytes) -> Errors:
    if len(request) > MAX_REQUEST_SIZE:
        yield too_long(_REQUEST, MAX_REQUEST_SIZE)
        return
    try:
        parsed = _parse_request(request)
        key = parsed.public_key()
    except ValueError:
        yield invalid(_REQUEST, OMIT_VALUE, "must be a valid PKCS#10 CSR")
        return
    problems = list(_validate_type(key, _REQUEST, OMIT_VALUE, "P256, P384, or P521"))
    yield from problems
    if not problems and not _is_signed(parsed):
        yield invalid(_REQUEST, OMIT_VALUE, "invalid signature")


def _is_signed(request: CertificateSigningRequest) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        return False


def _validate_key(key: bytes, proof: bytes, spec: Json) -> Errors:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    for value, limit, path in ((key, MAX_KEY_SIZE, _KEY), (proof, MAX_PROOF_SIZE, _PROOF)):
        if len(value) > limit:
            yield too_long(path, limit)
            return
    try:
        parsed = load_der_public_key(key)
    except (ValueError, UnsupportedAlgorithm):
        yield invalid(_KEY, spec["pkixPublicKey"], "must be a valid PKIX-serialized public key")
        return
    problems = list(_validate_type(parsed, _KEY, spec["pkixPublicKey"], "P256 or P384"))
    yield from problems
    if not problems and not _proves(parsed, proof, text(spec, "podUID").encode()):
        yield invalid(_PROOF, OMIT_VALUE, "could not verify proof-of-possession signature")


def _validate_type(key: object, path: Path, rendered: object, curves: str) -> Errors:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, EllipticCurvePublicKey):
        if key.curve.name not in _CURVES:
            name = f"curve P-{key.curve.key_size}"
            yield invalid(path, name, f"elliptic public keys must use curve {curves}")
    elif isinstance(key, RSAPublicKey):
        if (bits := -(-key.key_size // 8) * 8) not in _RSA_BITS:
            yield invalid(path, f"{bits}-bit modulus", _BAD_RSA)
    elif not isinstance(key, Ed25519PublicKey):
        yield invalid(path, rendered, _UNKNOWN_TYPE)


def _proves(key: object, proof: bytes, uid: bytes) -> bool:
    """Whether the owner of the key signed the pod's uid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(proof, uid)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(proof, uid, ec.ECDSA(SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(proof, uid, padding.PSS(padding.MGF1(SHA256()), padding.PSS.AUTO), SHA256())
    except InvalidSignature:
        return False
    return True
