"""Which groups, versions and resources a server has. Asks for aggregated discovery and understands both forms.

Answers are kept until `invalidate`. A group that is listed but can not be read (its server is down) is left out and
reported in `failed`.
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
    """One resource, or with a slash in its name one subresource, of one version."""

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
    """Versions in the server's order of preference."""

    name: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerResources:
    groups: tuple[APIGroup, ...]
    resources: tuple[APIResource, ...]
    """In the order of groups and versions."""
    failed: Mapping[GroupVersion, str] = field(default_factory=dict)
    """Why a version that is listed could not be read."""

    @property
    def failure(self) -> str:
        """Return a message about the groups that could not be read; "" if all could."""
        told = ", ".join(f"{gv}: {why}" for gv, why in sorted(self.failed.items(), key=lambda item: str(item[0])))
        return f"unable to retrieve the complete list of server APIs: {told}" if told else ""

    def preferred(self) -> list[APIResource]:
        """Each resource once, in the first version of its group that has it."""
        found: dict[tuple[str, str], APIResource] = {}
        for resource in self.resources:
            found.setdefault((resource.resource.group, resource.resource.resource), resource)
        return [*found.values()]


class DiscoveryClient:
    """Asks a server what it serves. The answer is kept until `invalidate`.

    >>> from pilothouse.client import DiscoveryClient
    >>> found = await DiscoveryClient(client).server_resources()
    >>> next(resource.kind.kind for resource in found.resources if "po" in resource.short_names)
    'Pod'
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: ServerResources | None = None

    async def server_version(self) -> Json:
        """Return what `/version` answers. Raises StatusError."""
        return await self._client.get_json("/version")

    def invalidate(self) -> None:
        """Forget what was found, so that the next question asks the server."""
        self._found = None

    async def server_resources(self) -> ServerResources:
        """Return the resources of all group versions, and remember them. Raises StatusError."""
        if self._found is None:
            core, others = await self._read("/api"), await self._read("/apis")
            parts = [core, others]
            self._found = ServerResources(
                groups=tuple(group for part in parts for group in part.groups),
                resources=tuple(resource for part in parts for resource in part.resources),
                failed={**core.failed, **others.failed},
            )
        return self._found

    async def _read(self, path: str) -> ServerResources:
        try:
            answer = await self._client.get_json(path, accept=_AGGREGATED)
        except NotFound:
            return ServerResources((), ())
        if answer.get("kind") == "APIGroupDiscoveryList":
            return _from_aggregated(answer)
        return await self._from_legacy(answer)

    async def _from_legacy(self, answer: Json) -> ServerResources:
        groups = _legacy_groups(answer)
        resources: list[APIResource] = []
        failed: dict[GroupVersion, str] = {}
        for gv in (GroupVersion(group.name, version) for group in groups for version in group.versions):
            try:
                resources += await self._resources_of(gv)
            except (StatusError, ConnectionFailed) as error:
                logger.warning("can not discover the resources of %s: %s", gv, error)
                failed[gv] = str(error)
        return ServerResources(groups, tuple(resources), failed)

    async def _resources_of(self, gv: GroupVersion) -> list[APIResource]:
        answer = await self._client.get_json(f"/apis/{gv}" if gv.group else f"/api/{gv}")
        return [_legacy_resource(gv, entry) for entry in answer.get("resources") or ()]


def _legacy_groups(answer: Json) -> tuple[APIGroup, ...]:
    if answer.get("kind") == "APIVersions":
        return (APIGroup("", tuple(answer.get("versions") or ())),)
    return tuple(_legacy_group(entry) for entry in answer.get("groups") or ())


def _legacy_group(entry: Json) -> APIGroup:
    """The preferred version goes first, whatever the order of the list."""
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


def _from_aggregated(answer: Json) -> ServerResources:
    groups: list[APIGroup] = []
    resources: list[APIResource] = []
    failed: dict[GroupVersion, str] = {}
    for group in answer.get("items") or ():
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
    """The resource and its subresources; a kind that is left out has no type of its own on the wire."""
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
    found = kind or {}
    return GroupVersionKind(found.get("group") or gv.group, found.get("version") or gv.version, found.get("kind") or "")
