"""Options of the secure port and its certificates, and of the insecure port: plain HTTP without authentication or
authorization, disabled by default."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pilothouse.apiserver.serving.tls_options import INSECURE_NAMES, PREFERRED_NAMES, VERSIONS, KeyPair, unknown_names
from pilothouse.controlplane.options.files import missing_files
from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, INT, IP, STRING, STRING_ARRAY, STRINGS, flag
from pilothouse.machinery.platform import CAN_SHARE_PORTS

_CIPHER_SUITES_HELP = (
    "Comma-separated list of cipher suites for the server. "
    "If omitted, the preferred ones will be used, but for those with CBC.\n"
    f"Preferred values: {', '.join(PREFERRED_NAMES)}.\n"
    f"Insecure values: {', '.join(INSECURE_NAMES)}."
)


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
    cert_dir: str = flag(
        "cert-dir",
        STRING,
        "",
        "The directory with apiserver.crt and apiserver.key, which are made if they are missing. Without it they are in"
        " --data-dir. Ignored with --tls-cert-file.",
    )
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
        "tls-min-version", STRING, "", f"The oldest TLS version to speak: {', '.join(VERSIONS)}."
    )
    tls_cipher_suites: tuple[str, ...] = flag("tls-cipher-suites", STRINGS, (), _CIPHER_SUITES_HELP)

    disable_http2_serving: bool = flag("disable-http2-serving", BOOL, False, "Speak HTTP/1.1 only.")
    http2_max_streams_per_connection: int = flag(
        "http2-max-streams-per-connection", INT, 0, "How many requests one HTTP/2 connection may carry at once."
    )
    permit_port_sharing: bool = flag(
        "permit-port-sharing", BOOL, False, "Let other processes listen on the same port (SO_REUSEPORT)."
    )

    @property
    def given_pair(self) -> KeyPair | None:
        """Serving certificate and key from flags. Files of --cert-dir may not exist yet."""
        if self.tls_cert_file:
            return KeyPair(Path(self.tls_cert_file), Path(self.tls_private_key_file))
        folder = Path(self.cert_dir)
        return KeyPair(folder / "apiserver.crt", folder / "apiserver.key") if self.cert_dir else None

    def validate(self) -> Iterator[str]:
        if not 0 <= self.secure_port <= 65535:
            yield f"--secure-port {self.secure_port} must be between 0 and 65535, inclusive. 0 for any free port"
        if self.http2_max_streams_per_connection < 0:
            yield "--http2-max-streams-per-connection can not be negative value"
        if self.permit_port_sharing and not CAN_SHARE_PORTS:
            yield "--permit-port-sharing: this system has no SO_REUSEPORT; run one server per port"
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            yield "--tls-cert-file and --tls-private-key-file must be specified together"
        yield from missing_files(
            {"tls-cert-file": self.tls_cert_file, "tls-private-key-file": self.tls_private_key_file}
        )
        yield from unknown_names(self.tls_min_version, self.tls_cipher_suites)
        for text in self.tls_sni_cert_key:
            yield from _validate_pair(text)


def _validate_pair(text: str) -> Iterator[str]:
    pair, colon, names = text.partition(":")
    files = [file.strip() for file in pair.split(",")]
    if len(files) != 2 or not all(files):
        yield f'--tls-sni-cert-key "{text}": expected comma separated certificate and key file paths'
        return
    if colon and not names.strip():
        yield f'--tls-sni-cert-key "{text}": empty names list is not allowed'
    for file in files:
        yield from missing_files({"tls-sni-cert-key": file})


@dataclass(frozen=True)
class InsecureServingOptions:
    title: ClassVar[str] = "insecure serving"

    bind_address: str = flag(
        "insecure-bind-address",
        IP,
        "127.0.0.1",
        "Listen address of --insecure-port; every client has all rights.",
        group=TaskGroup.STARTUP,
    )
    port: int = flag(
        "insecure-port",
        INT,
        0,
        "Port for plain HTTP without authentication; 0 turns the port off.",
        group=TaskGroup.STARTUP,
    )

    def validate(self) -> Iterator[str]:
        if not 0 <= self.port <= 65535:
            yield f"--insecure-port {self.port} must be between 0 and 65535, inclusive. 0 for turning off insecure port"
        if self.port and not ipaddress.ip_address(self.bind_address).is_loopback:
            yield f"--insecure-bind-address {self.bind_address}: plain HTTP is served on loopback addresses only"
