"""Options of outgoing connections: aggregated API servers, kubelets, egress selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pilothouse.controlplane.options.files import content, missing_files
from pilothouse.kube.config import KUBELET_ADDRESS_TYPES, KUBELET_PORT, KUBELET_TIMEOUT
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, INT, STRING, STRINGS, flag

if TYPE_CHECKING:
    from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig


@dataclass(frozen=True)
class AggregatorOptions:
    title: ClassVar[str] = "aggregator"

    enable_routing: bool = flag(
        "enable-aggregator-routing",
        BOOL,
        False,
        "Reach Services by the addresses of their endpoints; if false, by their cluster IPs. "
        "Without it, by endpoints where there are ready ones, and otherwise by cluster IPs.",
    )

    reject_forwarding_redirect: bool = flag(
        "aggregator-reject-forwarding-redirect",
        BOOL,
        True,
        "Answer 502 where the server of another API group would send the client elsewhere.",
    )
    proxy_client_cert_file: str = flag(
        "proxy-client-cert-file",
        STRING,
        "",
        "The client certificate that is shown to the servers of other API groups. Without it, the one in --data-dir.",
    )
    proxy_client_key_file: str = flag("proxy-client-key-file", STRING, "", "The key of --proxy-client-cert-file.")

    def validate(self) -> Iterator[str]:
        if bool(self.proxy_client_cert_file) != bool(self.proxy_client_key_file):
            yield "--proxy-client-cert-file and --proxy-client-key-file must be specified together"
        yield from missing_files(
            {
                "proxy-client-cert-file": self.proxy_client_cert_file,
                "proxy-client-key-file": self.proxy_client_key_file,
            }
        )


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
        "kubelet-preferred-address-types", STRINGS, KUBELET_ADDRESS_TYPES, "The addresses of a node to try, best first."
    )
    port: int = flag("kubelet-port", INT, KUBELET_PORT, "The port of kubelets whose nodes name none.")
    timeout: float = flag("kubelet-timeout", DURATION, KUBELET_TIMEOUT, "How long connecting to a kubelet may take.")

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
        from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig  # imports the registry

        return KubeletConfig(
            client_certificate=self.client_certificate,
            client_key=self.client_key,
            certificate_authority=self.certificate_authority,
            preferred_address_types=self.preferred_address_types,
            port=self.port,
            timeout=self.timeout,
        )


@dataclass(frozen=True)
class EgressSelectorOptions:
    title: ClassVar[str] = "egress selector"

    config_file: str = flag(
        "egress-selector-config-file",
        STRING,
        "",
        "An EgressSelectorConfiguration. Only direct connections are there; proxies are refused.",
    )

    @property
    def selections(self) -> frozenset[str] | None:
        """Networks of the configuration file; None without a file. Raises OSError, ValueError."""
        if not self.config_file:
            return None
        from pilothouse.controlplane.egress import read_egress_selections

        return read_egress_selections(content(self.config_file))

    def validate(self) -> Iterator[str]:
        problems = [*missing_files({"egress-selector-config-file": self.config_file})]
        yield from problems
        if not problems:
            try:
                _ = self.selections
            except ValueError as error:
                yield f"failed to read egress selector configuration: {error}"
