"""The certificates that frameworks for tests make: envtest has a CA for servers and one for clients, jenvtest none."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier


class TinyCA:
    """As envtest's: names `envtest`, serial numbers from 1, leaves without basic constraints."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._serial = 1
        self._name = _name("envtest-environment", ["envtest"])
        built = _builder(self._name, self._name, self._key, 1).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        usage = _usage(signs_certificates=True)
        self._certificate = built.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def pem(self) -> tuple[bytes, bytes]:
        return _pem(self._certificate, self._key)

    def serving(self) -> tuple[bytes, bytes]:
        addresses = (x509.IPAddress(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", "::1"))
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])
        return self._issue(_name("localhost", ["envtest"]), ExtendedKeyUsageOID.SERVER_AUTH, [names])

    def client(self, name: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        return self._issue(_name(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self, subject: x509.Name, purpose: ObjectIdentifier, more: Iterable[x509.ExtensionType]
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key, self._serial)
        self._serial += 1
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        for extension in (x509.ExtendedKeyUsage([purpose]), *more):
            builder = builder.add_extension(extension, critical=False)
        return _pem(builder.sign(self._key, hashes.SHA256()), key)


def self_signed(name: str, *groups: str, address: str = "") -> tuple[bytes, bytes]:
    """Return a certificate, which is no CA and says nothing of its purpose, with its key."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), _name(name, groups)
    builder = _builder(subject, subject, key, 1)
    if address:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(names, critical=False)
    return _pem(builder.sign(key, hashes.SHA256()), key)


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(serial).not_valid_before(now).not_valid_after(now + datetime.timedelta(hours=168))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(True, False, True, False, False, signs_certificates, False, False, False)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> tuple[bytes, bytes]:
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), secret
