"""Validation of X.509 certificates and requests, with the error messages of Go's crypto/x509."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.pem import pem_blocks

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

_REQUEST = "CERTIFICATE REQUEST"
_CERTIFICATE = "CERTIFICATE"


class BadRequestData(ValueError):
    """The text is no certificate signing request."""


def parse_request(encoded: str) -> CertificateSigningRequest:
    """Return the request in base64 of PEM. Raises BadRequestData."""
    from cryptography.x509 import load_der_x509_csr

    block = next(pem_blocks(base64.b64decode(encoded or "")), None)
    if block is None or block.type != _REQUEST:
        raise BadRequestData(f"PEM block type must be {_REQUEST}")
    try:
        return load_der_x509_csr(block.body)
    except ValueError:
        raise BadRequestData("asn1: structure error: malformed certificate request") from None


def request_problem(encoded: str) -> str:
    """Return the problem with a certificate request, or an empty string."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        request = parse_request(encoded)
        if request.is_signature_valid or _is_signed_by_sha1(request):
            return ""
    except BadRequestData as error:
        return str(error)
    except (ValueError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key = request.public_key()
    if isinstance(key, RSAPublicKey):
        return "crypto/rsa: verification error"
    return (
        "x509: ECDSA verification failure"
        if isinstance(key, EllipticCurvePublicKey)
        else "x509: Ed25519 verification failure"
    )


def _is_signed_by_sha1(request: CertificateSigningRequest) -> bool:
    """Report whether the signature uses SHA-1, which Go accepts in requests but not in certificates."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import SHA1

    key, signed, sha1 = request.public_key(), request.tbs_certrequest_bytes, SHA1()
    if not isinstance(request.signature_hash_algorithm, SHA1):
        return False
    try:
        if isinstance(key, RSAPublicKey):
            key.verify(request.signature, signed, PKCS1v15(), sha1)
        elif isinstance(key, EllipticCurvePublicKey):
            key.verify(request.signature, signed, ECDSA(sha1))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def organizations(request: CertificateSigningRequest) -> list[str]:
    from cryptography.x509.oid import NameOID

    return [str(item.value) for item in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def common_name(request: CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def certificate_problem(encoded: str) -> str:
    """Return the problem with a certificate chain, or an empty string."""
    from cryptography.x509 import load_der_x509_certificate

    if not encoded:
        return ""
    result = 0
    for block in pem_blocks(base64.b64decode(encoded)):
        if block.type != _CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        result += 1
        try:
            load_der_x509_certificate(block.body)
        except ValueError:
            return "x509: malformed certificate"
    return "" if result else "must contain at least one CERTIFICATE PEM block"
