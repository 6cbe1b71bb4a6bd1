"""Discovery documents of groups and of one group version (APIResourceList), and their aggregated form."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.endpoints.install import verbs_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
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


def resource_list(version: APIVersion) -> Json:
    """Return the APIResourceList. The legacy group's document has no apiVersion, as upstream."""
    head: Json = {"kind": "APIResourceList"}
    if version.group_version.group:
        head["apiVersion"] = "v1"
    resources = [_api_resource(version, served) for served in sorted(version.resources, key=lambda r: r.path)]
    return head | {"groupVersion": str(version.group_version), "resources": resources}


def _api_resource(version: APIVersion, served: ServedResource) -> Json:
    out: Json = {
        "name": served.path,
        "singularName": "" if served.subresource else served.names.singular,
        "namespaced": served.namespaced,
    }
    if served.kind.group_version != version.group_version:
        out |= {"group": served.kind.group, "version": served.kind.version}
    out |= {"kind": served.kind.kind, "verbs": verbs_of(served.storage, subresource=bool(served.subresource))}
    if not served.subresource:
        out |= _names(served)
        if served.storage_version:
            out["storageVersionHash"] = storage_version_hash(served.storage_version, served.kind.kind)
    return out


def _names(served: ServedResource) -> Json:
    parts = {"shortNames": list(served.names.short), "categories": list(served.names.categories)}
    return {key: value for key, value in parts.items() if value}


def storage_version_hash(stored: GroupVersion, kind: str) -> str:
    """Return a hash that changes with the storage version."""
    text = f"{stored.group}/{stored.version}/{kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def version_discovery(version: APIVersion, *, freshness: str = "Current") -> Json:
    """Return one version of an APIGroupDiscovery. Subresources are nested in their resource."""
    by_path = sorted(version.resources, key=lambda r: r.path)
    children: dict[str, list[Json]] = {}
    for served in by_path:
        if served.subresource:
            children.setdefault(served.names.plural, []).append(
                {
                    "subresource": served.subresource,
                    "responseKind": _response_kind(version, served),
                    "verbs": verbs_of(served.storage, subresource=True),
                }
            )
    resources = [_resource(version, r, children.pop(r.names.plural, [])) for r in by_path if not r.subresource]
    return {"version": version.group_version.version, "resources": resources, "freshness": freshness}


def _resource(version: APIVersion, served: ServedResource, subresources: list[Json]) -> Json:
    out: Json = {
        "resource": served.names.plural,
        "responseKind": _response_kind(version, served),
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.names.singular,
        "verbs": verbs_of(served.storage, subresource=False),
        **_names(served),
    }
    return out | {"subresources": subresources} if subresources else out


def _response_kind(version: APIVersion, served: ServedResource) -> Json:
    if served.kind.group_version == version.group_version:
        return {"group": "", "version": "", "kind": served.kind.kind}
    return {"group": served.kind.group, "version": served.kind.version, "kind": served.kind.kind}
