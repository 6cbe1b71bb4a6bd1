"""Kubelet: how this server connects to the nodes, for logs, exec and the like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.kube.core.pods.connect.kubelet import ADDRESS_TYPES, DEFAULT_PORT, DEFAULT_TIMEOUT, KubeletConfig
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import DURATION, INT, STRING, STRINGS, flag


@dataclass(frozen=True)
class KubeletOptions:
    title: ClassVar[str] = "kubelet"

    certificate_authority: str = flag(
        "kubelet-certificate-authority", STRING, "", "The CA of the kubelets. Without it, they are not verified."
    )
    client_certificate: str = flag(
        "kubelet-client-certificate", STRING, "", "The certificate that is shown to kubelets."
    )
    client_key: str = flag("kubelet-client-key", STRING, "", "The key of the certificate that is shown to kubelets.")
    preferred_address_types: tuple[str, ...] = flag(
        "kubelet-preferred-address-types", STRINGS, ADDRESS_TYPES, "The addresses of a node to try, best first."
    )
    port: int = flag("kubelet-port", INT, DEFAULT_PORT, "The port of kubelets whose nodes name none.")
    timeout: float = flag("kubelet-timeout", DURATION, DEFAULT_TIMEOUT, "How long connecting to a kubelet may take.")

    def validate(self) -> Iterator[str]:
        yield from missing_files(
            {
                "kubelet-certificate-authority": self.certificate_authority,
                "kubelet-client-certificate": self.client_certificate,
                "kubelet-client-key": self.client_key,
            }
        )

    @property
    def config(self) -> KubeletConfig:
        return KubeletConfig(
            client_certificate=self.client_certificate,
            client_key=self.client_key,
            certificate_authority=self.certificate_authority,
            preferred_address_types=self.preferred_address_types,
            port=self.port,
            timeout=self.timeout,
        )
