"""DiscoveryClient: groups, versions and resources of a server, from aggregated or legacy discovery.

Results are cached until `invalidate`. A group that cannot be read (its server is down) is omitted and reported in
`failed`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import field

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_AGGREGATED = ",".join(
    [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    ]
)


@dataclass(frozen=True, slots=True)
class APIResource:
    """Resource of one version; a subresource if the name contains a slash."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    singular: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def is_subresource(self) -> bool:
        return "/" in self.resource.resource


@dataclass(frozen=True, slots=True)
class APIGroup:
    """API group. Versions are in the server's order of preference."""

    name: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerResources:
    groups: tuple[APIGroup, ...]
    resources: tuple[APIResource, ...]
    """In the order of groups and versions."""
    failed: Mapping[GroupVersion, str] = field(default_factory=dict)
    """Group version → reason why its resources could not be read."""

    @property
    def failure(self) -> str:
        """Return an error message for the unreadable groups; "" if there are none."""
        failed = sorted(self.failed.items(), key=lambda item: str(item[0]))
        failures = ", ".join(f"{gv}: {reason}" for gv, reason in failed)
        return f"unable to retrieve the complete list of server APIs: {failures}" if failures else ""

    def preferred(self) -> list[APIResource]:
        """Return each resource once, in the most preferred version of its group that has the resource."""
        resources: dict[tuple[str, str], APIResource] = {}
        for resource in self.resources:
            resources.setdefault((resource.resource.group, resource.resource.resource), resource)
        return [*resources.values()]


class DiscoveryClient:
    """Reads the resources of a server. Results are cached until `invalidate`.

    >>> from pilothouse.client import DiscoveryClient
    >>> found = await DiscoveryClient(client).server_resources()
    >>> next(resource.kind.kind for resource in found.resources if "po" in resource.short_names)
    'Pod'
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cached: ServerResources | None = None

    async def server_version(self) -> Json:
        """Return the content of `/version`. Raises StatusError."""
        return await self._client.get_json("/version")

    def invalidate(self) -> None:
        """Clear the cache, so that the next call asks the server."""
        self._cached = None

    async def server_resources(self) -> ServerResources:
        """Return the resources of all group versions, from the cache if possible. Raises StatusError."""
        if self._cached is None:
            core, others = await self._read("/api"), await self._read("/apis")
            parts = [core, others]
            self._cached = ServerResources(
                groups=tuple(group for part in parts for group in part.groups),
                resources=tuple(resource for part in parts for resource in part.resources),
                failed={**core.failed, **others.failed},
            )
        return self._cached

    async def _read(self, path: str) -> ServerResources:
        try:
            document = await self._client.get_json(path, accept=_AGGREGATED)
        except NotFound:
            return ServerResources((), ())
        if document.get("kind") == "APIGroupDiscoveryList":
            return _from_aggregated(document)
        groups = _legacy_groups(document)
        resources: list[APIResource] = []
        failed: dict[GroupVersion, str] = {}
        for gv in (GroupVersion(group.name, version) for group in groups for version in group.versions):
            try:
                resources += await self._resources_of(gv)
            except (StatusError, ConnectionFailed) as error:
                logger.warning("cannot discover the resources of %s: %s", gv, error)
                failed[gv] = str(error)
        return ServerResources(groups, tuple(resources), failed)

    async def _resources_of(self, gv: GroupVersion) -> list[APIResource]:
        document = await self._client.get_json(f"/apis/{gv}" if gv.group else f"/api/{gv}")
        return [_legacy_resource(gv, entry) for entry in document.get("resources") or ()]


def _legacy_groups(document: Json) -> tuple[APIGroup, ...]:
    if document.get("kind") == "APIVersions":
        return (APIGroup("", tuple(document.get("versions") or ())),)
    return tuple(_legacy_group(entry) for entry in document.get("groups") or ())


def _legacy_group(entry: Json) -> APIGroup:
    """Build the group; the preferred version comes first."""
    preferred = (entry.get("preferredVersion") or {}).get("version")
    versions = [version["version"] for version in entry.get("versions") or ()]
    return APIGroup(entry["name"], tuple(sorted(versions, key=lambda version: version != preferred)))


def _legacy_resource(gv: GroupVersion, entry: Json) -> APIResource:
    kind = GroupVersionKind(entry.get("group") or gv.group, entry.get("version") or gv.version, entry["kind"])
    return APIResource(
        resource=gv.resource(entry["name"]),
        kind=kind,
        namespaced=bool(entry.get("namespaced")),
        singular=entry.get("singularName") or "",
        verbs=tuple(entry.get("verbs") or ()),
        short_names=tuple(entry.get("shortNames") or ()),
        categories=tuple(entry.get("categories") or ()),
    )


def _from_aggregated(document: Json) -> ServerResources:
    groups: list[APIGroup] = []
    resources: list[APIResource] = []
    failed: dict[GroupVersion, str] = {}
    for group in document.get("items") or ():
        name = group["metadata"].get("name") or ""
        versions = group.get("versions") or ()
        groups.append(APIGroup(name, tuple(version["version"] for version in versions)))
        for version in versions:
            gv = GroupVersion(name, version["version"])
            if version.get("freshness") == "Stale":
                failed[gv] = f"stale GroupVersion discovery: {gv}"
            for entry in version.get("resources") or ():
                resources += _aggregated_resources(gv, entry)
    return ServerResources(tuple(groups), tuple(resources), failed)


def _aggregated_resources(gv: GroupVersion, entry: Json) -> list[APIResource]:
    """Return the resource and its subresources. A subresource without a type of its own has an empty kind."""
    namespaced = entry.get("scope") == "Namespaced"
    main = APIResource(
        resource=gv.resource(entry["resource"]),
        kind=_kind(gv, entry.get("responseKind")),
        namespaced=namespaced,
        singular=entry.get("singularResource") or "",
        verbs=tuple(entry.get("verbs") or ()),
        short_names=tuple(entry.get("shortNames") or ()),
        categories=tuple(entry.get("categories") or ()),
    )
    return [main] + [
        APIResource(
            resource=gv.resource(f"{entry['resource']}/{sub['subresource']}"),
            kind=_kind(gv, sub.get("responseKind")),
            namespaced=namespaced,
            verbs=tuple(sub.get("verbs") or ()),
        )
        for sub in entry.get("subresources") or ()
    ]


def _kind(gv: GroupVersion, kind: Json | None) -> GroupVersionKind:
    kind = kind or {}
    return GroupVersionKind(kind.get("group") or gv.group, kind.get("version") or gv.version, kind.get("kind") or "")
