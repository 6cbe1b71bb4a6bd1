"""Reuse of existing keys and certificates, and creation of missing files.

A CA is reused while its files load; without a key the CA cannot issue. If the file holds several certificates, all are
trusted, and the certificate of the key issues. A leaf certificate is reused while its key and CA match, its names
suffice and no renewal is due.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes, PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pilothouse.controllers.certificates.authority import certificate_of
from pilothouse.controlplane.certificates.issue import (
    LEAF_LIFE,
    RENEW_BEFORE,
    Authority,
    Profile,
    certificate_pem,
    issue,
    key_pem,
    names_of,
    new_authority,
    new_key,
    public_key_pem,
)
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.machinery.files import PRIVATE, PUBLIC, write_atomically


def keep_authority(common_name: str, cert_file: Path, key_file: Path) -> Authority:
    key = cast("CertificateIssuerPrivateKeyTypes | None", _load_key(key_file))
    certificates = _load_certificates(cert_file)
    if not certificates:
        if key is None:
            key = new_key()
            write_atomically(key_file, key_pem(key), mode=PRIVATE)
        certificates = [new_authority(common_name, key)]
        write_atomically(cert_file, certificate_pem(certificates[0]), mode=PUBLIC)
    if key is None:
        return Authority(certificates[0], None)
    try:
        return Authority(certificate_of(key, certificates), key)
    except ValueError:
        raise CertificateError(f"{key_file} is not the key of {cert_file}") from None


def rotate_authority(common_name: str, cert_file: Path, key_file: Path, *, now: datetime) -> bool:
    """Replace a CA that expires before its next certificates would; report whether it was replaced.

    The file then holds the new CA and the former CAs that have not expired: clients trust certificates of both.
    """
    certificates = _load_certificates(cert_file)
    if any(now < each.not_valid_after_utc - LEAF_LIFE for each in certificates):
        return False
    if certificates and not key_file.exists():
        return False  # another program's CA
    key = new_key()
    kept = [each for each in certificates if now < each.not_valid_after_utc]
    authorities = [new_authority(common_name, key, now=now), *kept]
    write_atomically(key_file, key_pem(key), mode=PRIVATE)
    write_atomically(cert_file, b"".join(map(certificate_pem, authorities)), mode=PUBLIC)
    return True


def keep_certificate(
    profile: Profile,
    authority: Authority,
    cert_file: Path,
    key_file: Path,
    *,
    chain: bytes = b"",
    now: datetime | None = None,
) -> x509.Certificate:
    """Return the certificate; issue a new certificate if needed. `chain` is appended to a new certificate for clients
    that trust another CA. `now` is the time of the caller's clock; default: the system's."""
    now = now or datetime.now(UTC)
    certificate, key = next(iter(_load_certificates(cert_file)), None), _load_key(key_file)
    if (
        certificate is not None
        and key is not None
        and (
            certificate.public_key() == key.public_key()
            and now < certificate.not_valid_after_utc - RENEW_BEFORE
            and (profile.names is None or names_of(certificate).covers(profile.names))
            and _issued_by(certificate, authority.certificate)
        )
    ):
        return certificate
    if authority.key is None:
        raise CertificateError(f"{cert_file} must be issued anew, but the key of its CA is not here")
    fresh = new_key()
    certificate = issue(profile, fresh.public_key(), authority, now=now)
    write_atomically(key_file, key_pem(fresh), mode=PRIVATE)
    write_atomically(cert_file, certificate_pem(certificate) + chain, mode=PUBLIC)
    return certificate


def keep_signing_key(key_file: Path, public_file: Path) -> None:
    """Create the service account key if missing, and derive the public key unless already trusted."""
    key = _load_key(key_file)
    if key is None:
        key = new_key()
        write_atomically(key_file, key_pem(key), mode=PRIVATE)
    public = public_key_pem(key.public_key())
    if not public_file.exists() or public not in public_file.read_bytes():
        write_atomically(public_file, public, mode=PUBLIC)


def keep_shared_keys(folder: Path) -> tuple[Authority, Authority]:
    """Create missing shared keys, and return the CAs of users and of front proxies. Raises CertificateError,
    OSError."""
    ca = keep_authority("kubernetes", folder / "ca.crt", folder / "ca.key")
    proxy_ca = keep_authority("front-proxy-ca", folder / "front-proxy-ca.crt", folder / "front-proxy-ca.key")
    keep_signing_key(folder / "sa.key", folder / "sa.pub")
    return ca, proxy_ca


def _issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _load_certificates(file: Path) -> list[x509.Certificate]:
    if not file.exists():
        return []
    try:
        return x509.load_pem_x509_certificates(file.read_bytes())
    except ValueError as error:
        raise CertificateError(f"{file} is no certificate: {error}") from None


def _load_key(file: Path) -> PrivateKeyTypes | None:
    if not file.exists():
        return None
    try:
        return load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{file} is no private key: {error}") from None
