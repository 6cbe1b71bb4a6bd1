"""Registration of a server on this machine in a cluster, while the server runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pilothouse.builder.extension_service import ExtensionService
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.kinds.conditions import conditions_of, find_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.files import PRIVATE, write_atomically
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

log = logging.getLogger(__name__)

RECORD = "registered.json"
"""Default name of the record file in the data directory."""
_POLL_INTERVAL = 0.1
_CHECK_TIMEOUT = 15.0
"""Seconds for the aggregator's first check of an APIService; upstream's check takes up to 6."""
_PLURALS = {
    "Namespace": "namespaces",
    "Service": "services",
    "EndpointSlice": "endpointslices",
    "APIService": "apiservices",
}
_IDENTITY = ("apiVersion", "kind", "metadata")
UNSUPPORTED_EXTERNAL_NAME = 'unsupported service type "ExternalName"'
"""Message of an aggregator with --enable-aggregator-routing, in the condition Available."""


class Registration:
    """The objects that register the server. Existing objects are changed; only created objects are removed.

    The file `record` lists the created objects, so that a later process can continue or clean up after a crash.
    """

    def __init__(self, client: Client, record: Path) -> None:
        self._client = client
        self._record = record
        self._created_objects: list[Json] = json.loads(record.read_bytes()) if record.exists() else []

    async def put(self, objects: Sequence[Json]) -> None:
        """Create or change the objects, and remove created objects that are no longer wanted. Raises StatusError."""
        for obj in objects:
            await self._put(obj)
        wanted = [_identity(obj) for obj in objects]
        await self._remove([obj for obj in self._created_objects if obj not in wanted])

    async def remove(self) -> None:
        """Remove the created objects. Never raises: failures are logged."""
        await self._remove(self._created_objects)

    async def _put(self, obj: Json) -> None:
        objects, reported = self._objects(obj), None
        while not await self._create(objects, obj):
            existing = await self._existing(objects, name_of(obj))
            if existing is not None and not is_deleting(existing):
                if change := {key: value for key, value in obj.items() if key not in _IDENTITY}:
                    await objects.patch(name_of(obj), change)
                return
            if existing is not None and (reason := _reason_to_wait(existing)) != reported:
                log.warning("waiting for the deletion of %s %s%s", obj["kind"], name_of(obj), reason and f": {reason}")
                reported = reason
            await asyncio.sleep(_POLL_INTERVAL)

    async def _create(self, objects: ResourceClient, obj: Json) -> bool:
        try:
            await objects.create(obj)
        except AlreadyExists:
            return False
        self._save([*self._created_objects, _identity(obj)])
        return True

    async def _existing(self, objects: ResourceClient, name: str) -> Json | None:
        """Return the object; None if it has just been deleted, as after a previous server."""
        try:
            return await objects.get(name)
        except NotFound:
            return None

    async def _remove(self, objects: Iterable[Json]) -> None:
        for obj in reversed([*objects]):
            try:
                await self._objects(obj).delete(name_of(obj))
            except NotFound:
                pass
            except (StatusError, ConnectionFailed, OSError) as error:
                log.warning("cannot remove %s %s: %s", obj["kind"], name_of(obj), error)
            self._save([created for created in self._created_objects if created != obj])

    def _objects(self, obj: Json) -> ResourceClient:
        return self._client.resource(obj["apiVersion"], _PLURALS[obj["kind"]], namespace=namespace_of(obj))

    def _save(self, created: list[Json]) -> None:
        self._created_objects = created
        write_atomically(self._record, json.dumps(created).encode(), mode=PRIVATE)


def _reason_to_wait(namespace: Json) -> str:
    """Return the messages of the conditions that delay the deletion."""
    return "; ".join(sorted(item.get("message") or "" for item in conditions_of(namespace) if item["status"] == "True"))


async def has_endpoint_service(client: Client, place: ExtensionService) -> bool:
    """Report whether the Service of a previous registration is one with an EndpointSlice."""
    try:
        spec = (await client.resource("v1", "services", namespace=place.namespace).get(place.name))["spec"]
    except NotFound:
        return False
    return spec.get("type") == "ClusterIP" and not spec.get("selector")


async def refuses_external_names(client: Client, place: ExtensionService) -> bool:
    """Wait for the aggregator's check of the server; report whether ExternalName Services are unsupported."""
    api_services = client.resource("apiregistration.k8s.io/v1", "apiservices")
    deadline = asyncio.get_running_loop().time() + _CHECK_TIMEOUT
    while place.versions and asyncio.get_running_loop().time() < deadline:
        condition = find_condition(await api_services.get(f"{place.versions[0]}.{place.group}"), "Available") or {}
        if UNSUPPORTED_EXTERNAL_NAME in condition.get("message", ""):
            return True
        if condition.get("status") == "True" or condition.get("reason") == "FailedDiscoveryCheck":
            return False
        await asyncio.sleep(_POLL_INTERVAL)
    return False


def _identity(obj: Json) -> Json:
    metadata = {"name": name_of(obj), "namespace": namespace_of(obj)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
