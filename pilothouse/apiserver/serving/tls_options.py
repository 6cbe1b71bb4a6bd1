"""TLS options of kube-apiserver's flags: certificate files, and the Go names of versions and cipher suites."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pilothouse.machinery.dataclass import dataclass

VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

_OLDEST: Final = "VersionTLS12"

TLS13_SUITES: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Always enabled with TLS 1.3, as in Go."""

PREFERRED_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}

INSECURE_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}

_OPENSSL_NAMES: Final = PREFERRED_SUITES | INSECURE_SUITES
PREFERRED_NAMES: Final = sorted({*PREFERRED_SUITES, *TLS13_SUITES})
INSECURE_NAMES: Final = sorted(INSECURE_SUITES)

DEFAULT_CIPHERS: Final = ":".join(name for name in PREFERRED_SUITES.values() if not name.endswith("SHA"))


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """TLS options of every certificate. `ciphers`: OpenSSL's list for TLS 1.2; empty = TLS 1.3 only."""

    min_version: ssl.TLSVersion
    ciphers: str


def tls_options(min_version: str = "", cipher_suites: Iterable[str] = ()) -> TlsOptions:
    """Build the options. Raises ValueError for unknown names."""
    suites = list(cipher_suites)
    for problem in unknown_names(min_version, suites):
        raise ValueError(problem)
    version = VERSIONS[min_version or _OLDEST]
    if not suites:
        return TlsOptions(version, DEFAULT_CIPHERS)
    ciphers = ":".join(_OPENSSL_NAMES[name] for name in suites if name not in TLS13_SUITES)
    return TlsOptions(version if ciphers else ssl.TLSVersion.TLSv1_3, ciphers)


def unknown_names(min_version: str, cipher_suites: Iterable[str]) -> Iterator[str]:
    """Yield upstream's error message for each unknown name."""
    if min_version and min_version not in VERSIONS:
        yield f'unknown tls version "{min_version}"'
    for name in cipher_suites:
        if name not in _OPENSSL_NAMES and name not in TLS13_SUITES:
            yield f"Cipher suite {name} not supported or doesn't exist"


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
