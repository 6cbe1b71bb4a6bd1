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
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of
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
        self._described: dict[str, dict[str, _Described]] = {}
        """Group → definition name → entries."""
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
        resources = self._described_in(group)
        versions = sorted({version for resource in resources for version in resource.versions}, key=preference)
        if not versions:
            self._groups.pop(group, None)
            return
        entry = _entry(group, versions)
        self._documents[(group,)] = _handler({"kind": "APIGroup", "apiVersion": "v1", **entry})
        for version in versions:
            served = [resource.versions[version] for resource in resources if version in resource.versions]
            listed = [api_resource for resource in served for api_resource in resource.api_resources]
            head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}"}
            self._documents[group, version] = _handler(head | {"resources": listed})
        discovered = [_version_discovery(version, resources) for version in versions]
        self._groups[group] = GroupDocuments(group, entry, {"metadata": {"name": group}, "versions": discovered})

    def _described_in(self, group: str) -> list[_Described]:
        """Describe the established definitions of a group; descriptions of unchanged definitions are reused."""
        known = self._described.pop(group, {})
        found: dict[str, _Described] = {}
        for definition in self._of_group(group):
            if is_true(definition, ESTABLISHED):
                before = known.get(name := name_of(definition))
                is_same = before is not None and before.definition is definition
                found[name] = before if before is not None and is_same else _Described.of(definition)
        if found:
            self._described[group] = found
        return [*found.values()]


@dataclass(frozen=True, slots=True)
class _DescribedVersion:
    api_resources: list[Json]
    discovery: Json


@dataclass(frozen=True, slots=True)
class _Described:
    """The entries of one definition in the documents of its group, by served version."""

    definition: Json
    plural: str
    versions: dict[str, _DescribedVersion]

    @classmethod
    def of(cls, definition: Json) -> _Described:
        resource = CustomResource(definition)
        versions = {
            version.name: _DescribedVersion(
                list(_api_resources(resource, version)), _resource_discovery(resource, version)
            )
            for version in resource.versions.values()
            if version.served
        }
        return cls(definition, resource.plural, versions)


def _handler(document: Json) -> Handler:
    return any_method(lambda: document)


def _entry(group: str, versions: list[str]) -> Json:
    group_versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": group_versions, "preferredVersion": group_versions[0]}


def _api_resources(resource: CustomResource, version: Version) -> Iterator[Json]:
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


def _version_discovery(version: str, resources: list[_Described]) -> Json:
    served = [resource for resource in resources if version in resource.versions]
    documents = [resource.versions[version].discovery for resource in sorted(served, key=lambda each: each.plural)]
    return {"version": version, "resources": documents, "freshness": "Current"}


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
