"""Where the kubelet of a node can be reached, and with which certificates."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.pods.connect.kubelet_config import KubeletConfig
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class KubeletAddress:
    host: str
    port: int
    features: tuple[str, ...] = ()
    """The features that the node says its kubelet has."""


class Kubelets:
    """Finds kubelets through the status of their nodes."""

    def __init__(self, nodes: RegistryStore, config: KubeletConfig) -> None:
        self.config = config
        self._nodes = nodes

    async def locate(self, node_name: str) -> KubeletAddress:
        """Raises NotFound for a node that does not exist, StatusError for one without an address."""
        resource = self._nodes.resource.group_resource
        with translated(resource, node_name):
            found = await self._nodes.newest("", node_name)
        if found is None:
            raise NotFound.of(resource, node_name)
        status = found.parse().get("status") or {}
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        return KubeletAddress(
            host=self._address(status.get("addresses") or []),
            port=endpoint.get("Port") or self.config.port,
            features=tuple(status.get("declaredFeatures") or ()),
        )

    def _address(self, addresses: list[Json]) -> str:
        for kind in self.config.preferred_address_types:
            for each in addresses:
                if each.get("type") == kind:
                    return str(each.get("address") or "")
        known = " ".join(f"{{{each.get('type')} {each.get('address')}}}" for each in addresses)
        raise StatusError(f"no preferred addresses found; known addresses: [{known}]")
