"""Where the kubelets of simulated nodes are served: one server on this machine, known to all processes by its files."""

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
"""Whom the certificate names that the API server shows."""
SIMULATED: Final = "pilothouse.dev/simulated"
"""The annotation of the nodes that nothing but the simulation stands for."""


@dataclass(frozen=True)
class SimulatedKubelet:
    """The files, for who serves and who asks. Those of the certificates must be there before either does."""

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
        """Tells all who ask that the kubelets are served at this port."""
        aside = self._port_file.with_suffix(".new")
        aside.write_text(str(port), encoding="utf-8")
        replace_file(aside, self._port_file)

    def withdraw(self) -> None:
        self._port_file.unlink(missing_ok=True)

    @property
    def port(self) -> int:
        """Where they are served; 0 while they are not."""
        with suppress(OSError, ValueError):
            return int(self._port_file.read_text(encoding="utf-8"))
        return 0

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """How the API server connects. Raises OSError where the certificates are missing."""
        context = verifying_context(file=str(self.ca_cert))
        context.load_cert_chain(self.client_cert, self.client_key)
        return context
