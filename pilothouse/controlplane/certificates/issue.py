"""Generation of keys and certificates. All keys are ECDSA P-256: fast, and supported by every Kubernetes client."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificateIssuerPublicKeyTypes,
    CertificatePublicKeyTypes,
    PrivateKeyTypes,
    PublicKeyTypes,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pilothouse.controlplane.certificates.ensure import ServingNames
from pilothouse.machinery.dataclass import dataclass

AUTHORITY_LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=365)
RENEW_BEFORE: Final = timedelta(days=60)
_CLOCK_SKEW: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA. Without a key the CA verifies certificates, but cannot issue."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes | None


@dataclass(frozen=True, slots=True)
class Profile:
    """Purpose of a certificate: a client identity, or server names."""

    common_name: str
    organizations: tuple[str, ...] = ()
    names: ServingNames | None = None


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_key_pem(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def new_authority(
    common_name: str, key: CertificateIssuerPrivateKeyTypes, *, now: datetime | None = None
) -> x509.Certificate:
    name = _subject(common_name)
    return (
        _authority_builder(name, name, key.public_key(), AUTHORITY_LIFE, now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(common_name)]), critical=False)
        .sign(key, hashes.SHA256())
    )


def cross_signed(new: x509.Certificate, old: Authority) -> x509.Certificate:
    """Return the new CA's certificate signed by the old CA. Appended to a chain, the certificate lets clients that
    trust only the old CA verify certificates of the new CA."""
    assert old.key is not None, "the caller checks that the authority can issue"
    public = cast("CertificateIssuerPublicKeyTypes", new.public_key())
    life = old.certificate.not_valid_after_utc - datetime.now(UTC)
    return (
        _authority_builder(new.subject, old.certificate.subject, public, life)
        .add_extension(_issuer_key(old.certificate), critical=False)
        .sign(old.key, hashes.SHA256())
    )


def issue(
    profile: Profile, public: CertificatePublicKeyTypes, authority: Authority, *, now: datetime | None = None
) -> x509.Certificate:
    assert authority.key is not None, "the caller checks that the authority can issue"
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if profile.names else ExtendedKeyUsageOID.CLIENT_AUTH
    subject = _subject(profile.common_name, profile.organizations)
    builder = (
        _builder(subject, authority.certificate.subject, public, LEAF_LIFE, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(_issuer_key(authority.certificate), critical=False)
    )
    if profile.names:
        names = profile.names
        dns = [x509.DNSName(name) for name in sorted(names.dns)]
        builder = builder.add_extension(
            x509.SubjectAlternativeName(
                [*dns, *(x509.IPAddress(ipaddress.ip_address(address)) for address in sorted(names.ips))]
            ),
            critical=False,
        )
    return builder.sign(authority.key, hashes.SHA256())


def names_of(certificate: x509.Certificate) -> ServingNames:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ServingNames(frozenset(), frozenset())
    dns = extension.get_values_for_type(x509.DNSName)
    return ServingNames(frozenset(dns), frozenset(map(str, extension.get_values_for_type(x509.IPAddress))))


def _authority_builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: CertificateIssuerPublicKeyTypes,
    life: timedelta,
    now: datetime | None = None,
) -> x509.CertificateBuilder:
    return (
        _builder(subject, issuer, public, life, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: CertificatePublicKeyTypes,
    life: timedelta,
    now: datetime | None = None,
) -> x509.CertificateBuilder:
    now = now or datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _subject(common_name: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _issuer_key(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
