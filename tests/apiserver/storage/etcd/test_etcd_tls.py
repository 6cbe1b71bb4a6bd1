"""TLS to etcd: its certificate is checked, and ours is shown."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from etcd_process import EtcdProcess

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.etcd.store import EtcdStore

_NOW = datetime.datetime.now(datetime.UTC)


class Authority:
    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.ca = self._write(f"{name}.crt", self._certificate(self._name, self._key, is_ca=True))

    def issue(self, name: str) -> tuple[str, str]:
        """The files of a certificate for this machine, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        return self._write(f"{name}.crt", self._certificate(subject, key)), self._write(f"{name}.key", _pem(key))

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_ca: bool = False) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - datetime.timedelta(hours=1))
            .not_valid_after(_NOW + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, content: bytes) -> str:
        path = self._directory / name
        path.write_bytes(content)
        return str(path)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@dataclass
class SecureEtcd:
    url: str
    authority: Authority


@pytest.fixture
def secure_etcd(tmp_path: Path) -> Iterator[SecureEtcd]:
    """An etcd that serves only those who show a certificate of its authority."""
    authority = Authority(tmp_path, "authority")
    cert, key = authority.issue("server")
    options = ["--cert-file", cert, "--key-file", key, "--trusted-ca-file", authority.ca, "--client-cert-auth"]
    member = EtcdProcess(tmp_path, scheme="https", options=options)
    member.start()
    yield SecureEtcd(member.url, authority)
    member.kill()


async def test_a_store_works_over_tls_with_a_client_certificate(secure_etcd: SecureEtcd) -> None:
    cert, key = secure_etcd.authority.issue("client")
    store = await EtcdStore.connect([secure_etcd.url], ca=secure_etcd.authority.ca, cert=cert, key=key)
    entry = await store.create("/registry/a", b"")
    assert await store.get("/registry/a") == entry
    await store.close()


async def test_an_etcd_with_a_certificate_of_another_authority_is_refused(
    secure_etcd: SecureEtcd, tmp_path: Path
) -> None:
    cert, key = secure_etcd.authority.issue("client")
    stranger = Authority(tmp_path, "stranger")
    await (await EtcdStore.connect([secure_etcd.url], ca=secure_etcd.authority.ca, cert=cert, key=key)).close()
    with pytest.raises(Unavailable):
        await EtcdStore.connect([secure_etcd.url], ca=stranger.ca, cert=cert, key=key, dial_timeout=0.5)


async def test_a_certificate_file_that_is_not_there_is_named(secure_etcd: SecureEtcd) -> None:
    with pytest.raises(OSError, match=r"missing\.crt"):
        await EtcdStore.connect([secure_etcd.url], ca="missing.crt")
