"""Registration of a server on this machine in a cluster, while the server runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.files import PRIVATE, write_atomically
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

log = logging.getLogger(__name__)

RECORD = "registered.json"
"""Default name of the record file in the data directory."""
_POLL_INTERVAL = 0.1
_PLURALS = {"Namespace": "namespaces", "Service": "services", "APIService": "apiservices"}


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
        objects = self._objects(obj)
        while not await self._create(objects, obj):
            if not await self._is_terminating(objects, name_of(obj)):
                if "spec" in obj:
                    await objects.patch(name_of(obj), {"spec": obj["spec"]})
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _create(self, objects: ResourceClient, obj: Json) -> bool:
        try:
            await objects.create(obj)
        except AlreadyExists:
            return False
        self._save([*self._created_objects, _identity(obj)])
        return True

    async def _is_terminating(self, objects: ResourceClient, name: str) -> bool:
        """Whether the object is being deleted, or has just been deleted, as after a previous server."""
        try:
            return "deletionTimestamp" in (await objects.get(name))["metadata"]
        except NotFound:
            return True

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


def _identity(obj: Json) -> Json:
    metadata = {"name": name_of(obj), "namespace": namespace_of(obj)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
