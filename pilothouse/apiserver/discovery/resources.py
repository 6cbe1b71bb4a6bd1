"""Discovery of one group version: the APIResourceList, and the aggregated form."""

from __future__ import annotations

import base64
import hashlib

from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource
from pilothouse.apiserver.endpoints.install import verbs_of
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json


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
