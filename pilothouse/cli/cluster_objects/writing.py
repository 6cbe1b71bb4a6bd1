"""Writes objects into a cluster in dependency order. A rejected object is reported, and the rest is still written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field

from pilothouse.cli.cluster_objects.yaml_folder import creation_order, is_cluster_managed, plain_form
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
"""Field manager of the written objects."""
_ESTABLISH_TIMEOUT = 30
_TRIES = 5


@dataclass(slots=True)
class Written:
    """Number of written objects, and the failures."""

    done: int = 0
    failures: list[str] = field(default_factory=list)


class ObjectWriter:
    """Writes objects. With `status`, also writes their status, and maps owner references to the new uids."""

    def __init__(self, client: Client, *, status: bool) -> None:
        self._client = client
        self._mapper = RESTMapper(DiscoveryClient(client))
        self._status = status
        self._uids: dict[str, str] = {}  # old owner uid -> new owner uid

    async def write(self, objects: Sequence[Json]) -> Written:
        """Write the objects in order. Raises ConnectionFailed."""
        written = Written()
        for obj in creation_order([obj for obj in objects if not (self._status and is_cluster_managed(obj))]):
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
        owners = metadata(wanted).pop("ownerReferences", None) or ()
        if kept := [{**owner, "uid": self._uids[owner["uid"]]} for owner in owners if owner["uid"] in self._uids]:
            metadata(wanted)["ownerReferences"] = kept
        stored = await resource.apply(wanted, field_manager=MANAGER, force=True)
        if uid := metadata(obj).get("uid"):
            self._uids[uid] = stored["metadata"]["uid"]
        if self._status and obj.get("status"):
            await self._put_status(resource, obj)
        if obj["kind"] == "CustomResourceDefinition":
            await _wait_until_established(resource, name_of(obj))

    async def _put_status(self, resource: ResourceClient, obj: Json) -> None:
        """Write the status. Retries on conflict: a controller may write at the same time."""
        for _ in range(_TRIES):
            try:
                current = await resource.get(name_of(obj))
                await resource.update_status({**current, "status": obj["status"]})
            except Conflict:
                continue
            except NotFound:
                pass  # the kind has no status subresource
            return


async def _wait_until_established(definitions: ResourceClient, name: str) -> None:
    """Wait until the kind is served, or until the timeout."""
    options = ListOptions(field_selector=f"metadata.name={name}", timeout_seconds=_ESTABLISH_TIMEOUT)
    async with asyncio.timeout(_ESTABLISH_TIMEOUT + 1), await definitions.watch(options) as watch:
        async for event in watch:
            conditions = (event.object.get("status") or {}).get("conditions") or ()
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
