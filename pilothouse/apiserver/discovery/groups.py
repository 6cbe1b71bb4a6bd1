"""Discovery of groups: /api, /apis and /apis/GROUP."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

from pilothouse.apiserver.discovery.resources import version_discovery
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """The addresses of the server: an external one, which may become known late, and one for clients inside a
    network."""

    default: Callable[[], str]
    network: IPv4Network | IPv6Network | None = None
    inside: str = ""

    def for_client(self, client: str) -> list[Json]:
        """Return the addresses for a client with this IP address ("" if unknown)."""
        addresses: list[Json] = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.default()}]
        if client and self.network is not None and ip_address(client) in self.network:
            addresses.append({"clientCIDR": str(self.network), "serverAddress": self.inside})
        return addresses


def api_versions(group: APIGroup, addresses: list[Json]) -> Json:
    """Return the versions of the legacy group, with the addresses of the server."""
    return {
        "kind": "APIVersions",
        "versions": [v.group_version.version for v in group.versions],
        "serverAddressByClientCIDRs": addresses,
    }


def api_group(group: APIGroup) -> Json:
    return {"kind": "APIGroup", "apiVersion": "v1", **group_entry(group)}


def api_group_list(entries: Iterable[Json]) -> Json:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(entries)}


def group_entry(group: APIGroup) -> Json:
    """Return a group for the list of groups."""
    versions = [{"groupVersion": str(v.group_version), "version": v.group_version.version} for v in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def group_discovery(group: APIGroup) -> Json:
    """Return a group for the aggregated document."""
    metadata = {"name": group.name} if group.name else {}
    return {"metadata": metadata, "versions": [version_discovery(version) for version in group.versions]}


def group_discovery_list(items: Iterable[Json]) -> Json:
    """Return the aggregated document."""
    kind: Json = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return kind | {"items": list(items)}
