"""Discovery of custom resources: /apis/GROUP, /apis/GROUP/VERSION, and the entries in aggregated discovery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pilothouse.apiserver.discovery.groups import storage_version_hash
from pilothouse.apiserver.discovery.handlers import any_method
from pilothouse.apiserver.discovery.manager import GroupDocuments, GroupManager
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, TERMINATING
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.versions import preference

_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
_VERBS_WHILE_TERMINATING = ["delete", "deletecollection", "get", "list", "watch"]
_SUBRESOURCE_VERBS = ["get", "patch", "update"]
_SCALE: Json = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


class CustomResourceDiscovery:
    """A handler for group paths and group version paths."""

    def __init__(self, manager: GroupManager, of_group: Callable[[str], Iterable[Json]], *, delegate: Handler) -> None:
        """`of_group` returns the definitions of a group; definitions that are not established are hidden."""
        self._of_group = of_group
        self._delegate = delegate
        self._stale: set[str] = set()
        self._groups: dict[str, GroupDocuments] = {}
        self._documents: dict[tuple[str, ...], Handler] = {}
        """By (group,) and (group, version)."""
        manager.add_source(self.groups)

    async def __call__(self, request: Request) -> Response:
        _, *key = request.path.strip("/").split("/")
        self._refresh()
        return await self._documents.get(tuple(key), self._delegate)(request)

    def changed(self, group: str) -> None:
        """Invalidate the documents of a group. Documents are rebuilt on request, because definitions often arrive in
        bulk."""
        self._stale.add(group)

    def groups(self) -> Iterable[GroupDocuments]:
        self._refresh()
        return self._groups.values()

    def _refresh(self) -> None:
        while self._stale:
            self._make(self._stale.pop())

    def _make(self, group: str) -> None:
        for key in [key for key in self._documents if key[0] == group]:
            del self._documents[key]
        resources = [
            CustomResource(definition) for definition in self._of_group(group) if is_true(definition, ESTABLISHED)
        ]
        versions = sorted({v.name for r in resources for v in r.versions.values() if v.served}, key=preference)
        if not versions:
            self._groups.pop(group, None)
            return
        entry = _entry(group, versions)
        self._documents[(group,)] = _handler({"kind": "APIGroup", "apiVersion": "v1", **entry})
        for version in versions:
            api_resources = [
                api_resource
                for resource in resources
                for api_resource in _api_resources(resource, resource.versions.get(version))
            ]
            head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}"}
            self._documents[group, version] = _handler(head | {"resources": api_resources})
        discovered = [_version_discovery(version, resources) for version in versions]
        self._groups[group] = GroupDocuments(group, entry, {"metadata": {"name": group}, "versions": discovered})


def _handler(document: Json) -> Handler:
    return any_method(lambda: document)


def _entry(group: str, versions: list[str]) -> Json:
    group_versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": group_versions, "preferredVersion": group_versions[0]}


def _api_resources(resource: CustomResource, version: Version | None) -> Iterator[Json]:
    if version is None or not version.served:
        return
    names = resource.names
    yield {
        "name": names.plural,
        "singularName": names.singular,
        "namespaced": resource.namespaced,
        "kind": names.kind,
        "verbs": _verbs(resource),
        **_other_names(resource),
        **_storage_version_hash(resource),
    }
    common: Json = {"singularName": "", "namespaced": resource.namespaced}
    if version.has_status:
        yield {"name": f"{names.plural}/status", **common, "kind": names.kind, "verbs": _SUBRESOURCE_VERBS}
    if version.scale is not None:
        yield {"name": f"{names.plural}/scale", **common, **_SCALE, "verbs": _SUBRESOURCE_VERBS}


def _verbs(resource: CustomResource) -> list[str]:
    return _VERBS_WHILE_TERMINATING if is_true(resource.definition, TERMINATING) else _VERBS


def _other_names(resource: CustomResource) -> Json:
    parts = {"shortNames": list(resource.names.short), "categories": list(resource.names.categories)}
    return {key: value for key, value in parts.items() if value}


def _storage_version_hash(resource: CustomResource) -> Json:
    """Return the storage version hash, only if the stored version is served, as upstream."""
    stored = resource.storage_version
    if not stored.served:
        return {}
    kind = resource.spec["names"]["kind"]
    return {"storageVersionHash": storage_version_hash(GroupVersion(resource.group, stored.name), kind)}


def _version_discovery(version: str, resources: list[CustomResource]) -> Json:
    served = [r for r in sorted(resources, key=lambda r: r.plural) if r.versions.get(version, _NOT_THERE).served]
    documents = [_resource_discovery(resource, resource.versions[version]) for resource in served]
    return {"version": version, "resources": documents, "freshness": "Current"}


_NOT_THERE = Version({"name": ""})


def _resource_discovery(resource: CustomResource, version: Version) -> Json:
    names = resource.names
    kind: Json = {"group": resource.group, "version": version.name, "kind": names.kind}
    out: Json = {
        "resource": names.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": names.singular,
        "verbs": _verbs(resource),
        **_other_names(resource),
    }
    subresources = [("status", kind)] if version.has_status else []
    if version.scale is not None:
        subresources.append(("scale", _SCALE))
    if subresources:
        out["subresources"] = [
            {"subresource": name, "responseKind": response_kind, "verbs": _SUBRESOURCE_VERBS}
            for name, response_kind in subresources
        ]
    return out
