"""Certificate signing requests and certificates as clients send them: base64 of PEM."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(organizations: tuple[str, ...], common_name: str = "alice") -> x509.Name:
    common = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    return x509.Name([*common, *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations)])


@cache
def request_der(*organizations: str, common_name: str = "alice") -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(organizations, common_name))
    return builder.sign(_key(), hashes.SHA256()).public_bytes(Encoding.DER)


def pem(kind: str, der: bytes) -> str:
    """The base64 of a PEM block."""
    body = base64.encodebytes(der).decode()
    return base64.b64encode(f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n".encode()).decode()


def new_request(*organizations: str, common_name: str = "alice") -> str:
    return pem("CERTIFICATE REQUEST", request_der(*organizations, common_name=common_name))


@cache
def new_certificate() -> str:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(_name(())).issuer_name(_name(())).public_key(_key().public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(hours=1))
    return pem("CERTIFICATE", builder.sign(_key(), hashes.SHA256()).public_bytes(Encoding.DER))
