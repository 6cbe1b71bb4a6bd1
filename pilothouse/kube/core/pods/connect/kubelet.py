"""Where the kubelet of a node can be reached, and with which certificates."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.errors import NotFound, StatusError
from pilothouse.machinery.objects import Json

DEFAULT_PORT = 10250
ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@dataclass(frozen=True)
class KubeletConfig:
    """How this server presents itself to kubelets. Without an authority their certificates are not checked."""

    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    preferred_address_types: tuple[str, ...] = ADDRESS_TYPES
    port: int = DEFAULT_PORT
    timeout: float = 5.0
    """Seconds until a connection must stand."""

    @cached_property
    def tls(self) -> ssl.SSLContext:
        return self._context(verify=bool(self.certificate_authority))

    @cached_property
    def unverified_tls(self) -> ssl.SSLContext:
        return self._context(verify=False)

    def _context(self, *, verify: bool) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.certificate_authority or None if verify else None)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate:
            context.load_cert_chain(self.client_certificate, self.client_key or None)
        return context


@dataclass(frozen=True, slots=True)
class KubeletAddress:
    host: str
    port: int
    features: tuple[str, ...] = ()
    """What the node says that its kubelet can do."""


class Kubelets:
    """Finds kubelets through the status of their nodes."""

    def __init__(self, nodes: RegistryStore, config: KubeletConfig) -> None:
        self.config = config
        self._nodes = nodes

    async def locate(self, node_name: str) -> KubeletAddress:
        """Raises NotFound for a node that does not exist, StatusError for one without an address."""
        resource = self._nodes.resource.group_resource
        with translated(resource, node_name):
            found = await self._nodes.storage.get(self._nodes.keys.object("", node_name))
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
