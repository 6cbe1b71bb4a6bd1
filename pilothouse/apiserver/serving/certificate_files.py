"""Certificate files, and the names in certificates."""

from __future__ import annotations

from pathlib import Path

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (with its chain) and its private key, PEM.

    >>> from pathlib import Path
    >>> from pilothouse.apiserver import KeyPair
    >>> KeyPair(Path("server.crt"), Path("server.key")).cert_file.name
    'server.crt'
    """

    cert_file: Path
    key_file: Path


@dataclass(frozen=True, slots=True)
class SniCertificate:
    """A certificate for certain SNI names; without names, the names in the certificate apply."""

    pair: KeyPair
    names: tuple[str, ...] = ()


def parse_sni_certificate(value: str) -> SniCertificate:
    """Parse "cert,key" or "cert,key:name,name", the value of --tls-sni-cert-key."""
    files, colon, names = value.partition(":")
    patterns = tuple(name.strip() for name in names.split(",")) if names.strip() else ()
    if colon and not patterns:
        raise ValueError("empty names list is not allowed")
    pair = [part.strip() for part in files.strip().split(",")]
    if len(pair) != 2:
        raise ValueError("expected comma separated certificate and key file paths")
    return SniCertificate(KeyPair(Path(pair[0]), Path(pair[1])), patterns)


def certificate_names(cert_file: Path) -> list[str]:
    """Return the DNS names of a certificate: the common name, if a DNS name, and the alternative names."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = x509.load_pem_x509_certificate(cert_file.read_bytes())
    common = [str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return [name for name in common if _is_domain(name)]
    alternative = extension.value.get_values_for_type(x509.DNSName)
    return [name for name in common if _is_domain(name)] + alternative


def _is_domain(name: str) -> bool:
    labels = name.removeprefix("*.").split(".")
    if labels[-1].isdigit():
        return False
    return name == "*" or all(
        label
        and label.strip("-") == label
        and (label.isascii() and label.replace("-", "").isalnum() and label == label.lower())
        for label in labels
    )
