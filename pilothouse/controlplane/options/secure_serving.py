"""Secure serving: the address, and the certificates that the server shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pilothouse.controlplane.flags.declare import flag
from pilothouse.controlplane.flags.values import INT, IP, STRING, STRING_ARRAY, STRINGS

TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")


@dataclass(frozen=True)
class SNICertKey:
    """A certificate for the names given, or for those that it carries itself when none are."""

    cert: str
    key: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> SNICertKey:
        pair, _, names = text.partition(":")
        cert, comma, key = pair.partition(",")
        if not comma or not cert.strip() or not key.strip() or "," in key:
            raise ValueError("expected comma separated certificate and key file paths")
        return cls(cert.strip(), key.strip(), tuple(name.strip() for name in names.split(",") if name.strip()))


@dataclass(frozen=True)
class SecureServingOptions:
    title: ClassVar[str] = "secure serving"

    bind_address: str = flag(
        "bind-address",
        IP,
        "127.0.0.1",
        "The address to listen on for --secure-port; 0.0.0.0 or :: for all of the host's.",
    )
    secure_port: int = flag("secure-port", INT, 6443, "The port for HTTPS. 0 takes any free one.")
    tls_cert_file: str = flag(
        "tls-cert-file",
        STRING,
        "",
        "The serving certificate, with its chain. Without it one is made and kept in --data-dir.",
    )
    tls_private_key_file: str = flag("tls-private-key-file", STRING, "", "The key of --tls-cert-file.")
    tls_sni_cert_key: tuple[str, ...] = flag(
        "tls-sni-cert-key",
        STRING_ARRAY,
        (),
        "More certificates, by server name: cert,key[:name,name]. May be repeated.",
    )
    tls_min_version: str = flag(
        "tls-min-version", STRING, "", f"The oldest TLS version to speak: {', '.join(TLS_VERSIONS)}."
    )
    tls_cipher_suites: tuple[str, ...] = flag(
        "tls-cipher-suites",
        STRINGS,
        (),
        "The cipher suites to offer, by their IANA names; OpenSSL's defaults if empty.",
    )

    @property
    def sni(self) -> list[SNICertKey]:
        return [SNICertKey.parse(text) for text in self.tls_sni_cert_key]

    def validate(self) -> Iterator[str]:
        if not 0 <= self.secure_port <= 65535:
            yield f"--secure-port {self.secure_port} must be between 0 and 65535, inclusive. 0 for any free port"
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            yield "--tls-cert-file and --tls-private-key-file must be specified together"
        if self.tls_min_version and self.tls_min_version not in TLS_VERSIONS:
            yield f'unknown tls version "{self.tls_min_version}"'
        for text in self.tls_sni_cert_key:
            try:
                SNICertKey.parse(text)
            except ValueError as error:
                yield f'--tls-sni-cert-key "{text}": {error}'
