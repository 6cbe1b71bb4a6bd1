"""Groups in discovery: /api, /apis and /apis/GROUP."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.discovery.resources import version_discovery
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.machinery.objects import Json


def api_versions(group: APIGroup, address: str) -> Json:
    """The legacy group's versions, and where the server itself can be reached."""
    return {
        "kind": "APIVersions",
        "versions": [v.group_version.version for v in group.versions],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group(group: APIGroup) -> Json:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}


def api_group_list(groups: Iterable[APIGroup]) -> Json:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}


def _group(group: APIGroup) -> Json:
    versions = [{"groupVersion": str(v.group_version), "version": v.group_version.version} for v in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def group_discovery_list(groups: Iterable[APIGroup]) -> Json:
    """The aggregated document: everything in one answer."""
    items = [
        {"metadata": {"name": g.name} if g.name else {}, "versions": [version_discovery(v) for v in g.versions]}
        for g in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
