"""How this server presents itself to kubelets. Apart from the code that connects: the options need only this."""

from __future__ import annotations

import ssl
from functools import cached_property

from pilothouse.apiserver.outbound.tls import unverified_context, verifying_context
from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.simulated_kubelet import SimulatedKubelet

DEFAULT_PORT = 10250
DEFAULT_TIMEOUT = 5.0
ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@dataclass(frozen=True)
class KubeletConfig:
    """How this server presents itself to kubelets. Without an authority their certificates are not checked."""

    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    preferred_address_types: tuple[str, ...] = ADDRESS_TYPES
    port: int = DEFAULT_PORT
    timeout: float = DEFAULT_TIMEOUT
    """Seconds until a connection must stand."""
    simulated: SimulatedKubelet | None = None
    """Where the kubelets of simulated nodes are, on a server that has such."""

    @cached_property
    def tls(self) -> ssl.SSLContext:
        return self._context(verify=bool(self.certificate_authority))

    @cached_property
    def unverified_tls(self) -> ssl.SSLContext:
        return self._context(verify=False)

    def _context(self, *, verify: bool) -> ssl.SSLContext:
        context = verifying_context(file=self.certificate_authority) if verify else unverified_context()
        if self.client_certificate:
            context.load_cert_chain(self.client_certificate, self.client_key or None)
        return context
