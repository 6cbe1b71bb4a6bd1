"""TLS versions and cipher suites, by the Go names of kube-apiserver's flags."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
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
