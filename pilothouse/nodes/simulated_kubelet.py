"""Location of the simulated kubelet endpoint: one server on this machine, published to all processes through files."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from pilothouse.apiserver.outbound.tls import verifying_context
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.platform import replace_file

HOST: Final = "127.0.0.1"
SERVER_NAME: Final = "localhost"
CLIENT_NAME: Final = "kube-apiserver-kubelet-client"
"""Common name of the API server's client certificate."""
SIMULATED: Final = "pilothouse.dev/simulated"
"""Annotation of simulated nodes."""


@dataclass(frozen=True)
class SimulatedKubelet:
    """TLS files shared by the simulated kubelet and its clients; they must exist before either starts."""

    directory: Path

    @property
    def ca_cert(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.directory / "ca.key"

    @property
    def serving_cert(self) -> Path:
        return self.directory / "kubelet.crt"

    @property
    def serving_key(self) -> Path:
        return self.directory / "kubelet.key"

    @property
    def client_cert(self) -> Path:
        return self.directory / "apiserver-kubelet-client.crt"

    @property
    def client_key(self) -> Path:
        return self.directory / "apiserver-kubelet-client.key"

    @property
    def _port_file(self) -> Path:
        return self.directory / "port"

    def publish(self, port: int) -> None:
        """Publish the port."""
        aside = self._port_file.with_suffix(".new")
        aside.write_text(str(port), encoding="utf-8")
        replace_file(aside, self._port_file)

    def withdraw(self) -> None:
        self._port_file.unlink(missing_ok=True)

    @property
    def port(self) -> int:
        """The published port; 0 if not served."""
        with suppress(OSError, ValueError):
            return int(self._port_file.read_text(encoding="utf-8"))
        return 0

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Return the TLS context of the API server. Raises OSError if certificates are missing."""
        context = verifying_context(file=str(self.ca_cert))
        context.load_cert_chain(self.client_cert, self.client_key)
        return context
