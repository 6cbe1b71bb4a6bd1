"""Brings objects into a cluster, each after those that it needs; what does not go is told, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field

from pilothouse.cli.cluster_objects.order import in_order, is_made_by_the_cluster
from pilothouse.cli.cluster_objects.yaml_folder import plain_form
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupKind, GroupVersion
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

MANAGER = "pilothouse-snapshot"
"""The name under which managedFields record what is brought in."""
_ESTABLISHED_WITHIN = 30
_TRIES = 5


@dataclass(slots=True)
class Written:
    """What became of the objects."""

    done: int = 0
    failures: list[str] = field(default_factory=list)


class ObjectWriter:
    """With `status`, objects get the status that they have, too, and owners are found again by the uids they had."""

    def __init__(self, client: Client, *, status: bool) -> None:
        self._client = client
        self._mapper = RESTMapper(DiscoveryClient(client))
        self._status = status
        self._uids: dict[str, str] = {}  # of owners: those that they had, and those that they have

    async def write(self, objects: Sequence[Json]) -> Written:
        """Return what became of them. Raises ConnectionFailed."""
        written = Written()
        for obj in in_order([obj for obj in objects if not (self._status and is_made_by_the_cluster(obj))]):
            try:
                await self._write_one(obj)
                written.done += 1
            except (NoMatch, StatusError) as error:
                named = "/".join(filter(None, (obj["kind"], namespace_of(obj), name_of(obj))))
                written.failures.append(f"{named}: {error}")
        return written

    async def _write_one(self, obj: Json) -> None:
        version = GroupVersion.parse(obj["apiVersion"])
        mapping = await self._mapper.mapping(GroupKind(version.group, obj["kind"]), version.version)
        namespace = (namespace_of(obj) or "default") if mapping.namespaced else ""
        resource = self._client.for_resource(mapping.resource, namespace=namespace)
        wanted = plain_form(obj)
        self._find_owners(wanted)
        stored = await resource.apply(wanted, field_manager=MANAGER, force=True)
        if uid := metadata(obj).get("uid"):
            self._uids[uid] = stored["metadata"]["uid"]
        if self._status and obj.get("status"):
            await self._put_status(resource, obj)
        if obj["kind"] == "CustomResourceDefinition":
            await _established(resource, name_of(obj))

    def _find_owners(self, obj: Json) -> None:
        """What an object was owned by has another uid here; an owner that is not here owns nothing."""
        owners = metadata(obj).pop("ownerReferences", None) or ()
        if found := [{**each, "uid": self._uids[each["uid"]]} for each in owners if each["uid"] in self._uids]:
            metadata(obj)["ownerReferences"] = found

    async def _put_status(self, resource: ResourceClient, obj: Json) -> None:
        """Whoever keeps the status may write at the same time, and may know better."""
        for _ in range(_TRIES):
            try:
                current = await resource.get(name_of(obj))
                await resource.update_status({**current, "status": obj["status"]})
            except Conflict:
                continue
            except NotFound:
                pass  # it has no status of its own
            return


async def _established(definitions: ResourceClient, name: str) -> None:
    """Returns when the kind is served, or after a while."""
    options = ListOptions(field_selector=f"metadata.name={name}", timeout_seconds=_ESTABLISHED_WITHIN)
    async with asyncio.timeout(_ESTABLISHED_WITHIN + 1), await definitions.watch(options) as watch:
        async for event in watch:
            conditions = (event.object.get("status") or {}).get("conditions") or ()
            if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                return
