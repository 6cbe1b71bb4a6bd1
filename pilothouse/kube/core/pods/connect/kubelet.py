"""Addresses of kubelets, and the server's TLS configuration for kubelets."""

from __future__ import annotations

import ssl
from functools import cached_property

from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context, verifying_context
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.config import KUBELET_ADDRESS_TYPES, KUBELET_PORT, KUBELET_TIMEOUT
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.nodes.simulated_kubelet import HOST, SERVER_NAME, SIMULATED, SimulatedKubelet


@dataclass(frozen=True)
class KubeletConfig:
    """Client configuration for kubelets. Without a CA file, kubelet certificates are not verified."""

    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    preferred_address_types: tuple[str, ...] = KUBELET_ADDRESS_TYPES
    port: int = KUBELET_PORT
    timeout: float = KUBELET_TIMEOUT
    """Connect timeout in seconds."""
    simulated: SimulatedKubelet | None = None
    """Endpoint of the simulated kubelets, if this server simulates nodes."""

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


@dataclass(frozen=True, slots=True)
class KubeletAddress:
    host: str
    port: int
    features: tuple[str, ...] = ()
    """The kubelet's declared features, from the node's status."""
    simulated_as: str = ""
    """Name of the node if the node is simulated."""


class Kubelets:
    """Locates kubelets by node status."""

    def __init__(self, nodes: RegistryStore, config: KubeletConfig) -> None:
        self.config = config
        self._nodes = nodes

    async def locate(self, node_name: str) -> KubeletAddress:
        """Return the kubelet's address. Raises NotFound for a missing node, StatusError for a node without address."""
        resource = self._nodes.resource.group_resource
        with map_storage_errors(resource, node_name):
            stored = await self._nodes.newest("", node_name)
        if stored is None:
            raise NotFound.of(resource, node_name)
        node = stored.parse()
        status = node.get("status") or {}
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        return KubeletAddress(
            host=self._address(status.get("addresses") or []),
            port=endpoint.get("Port") or self.config.port,
            features=tuple(status.get("declaredFeatures") or ()),
            simulated_as=node_name if self._is_simulated(node) else "",
        )

    def _is_simulated(self, node: Json) -> bool:
        """Report whether this server simulates the node. The node's own annotation alone is not sufficient."""
        is_annotated = annotations_of(node).get(SIMULATED) == "true"
        return is_annotated and self.config.simulated is not None and bool(self.config.simulated.port)

    def target(self, kubelet: KubeletAddress, path: str, query: str = "", *, verify: bool = True) -> Target:
        """Return the connection target of a path on the kubelet."""
        if kubelet.simulated_as and (simulated := self.config.simulated) is not None:
            # All simulated nodes share one endpoint; the path begins with the name of the node.
            return Target(
                kubelet.host,
                simulated.port,
                f"/nodes/{kubelet.simulated_as}{path}",
                query,
                tls=simulated.tls,
                server_name=SERVER_NAME,
                address=HOST,
            )
        tls = self.config.tls if verify else self.config.unverified_tls
        return Target(kubelet.host, kubelet.port, path, query, tls, self.config.timeout)

    async def simulated_pod(self, pod: Json, port: int) -> Target | None:
        """Return the target for a port of a pod on a simulated node, or None for other pods.

        Addresses of simulated pods are not routable.
        """
        node = (pod.get("spec") or {}).get("nodeName") or ""
        if self.config.simulated is None or not node:
            return None
        kubelet = await self.locate(node)
        if not kubelet.simulated_as:
            return None
        return self.target(kubelet, f"/podPorts/{namespace_of(pod)}/{name_of(pod)}/{port}")

    def _address(self, addresses: list[Json]) -> str:
        for kind in self.config.preferred_address_types:
            for address in addresses:
                if address.get("type") == kind:
                    return str(address.get("address") or "")
        printed = " ".join(f"{{{address.get('type')} {address.get('address')}}}" for address in addresses)
        raise StatusError(f"no preferred addresses found; known addresses: [{printed}]")
