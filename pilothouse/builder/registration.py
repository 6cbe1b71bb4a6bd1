"""Registering a server that runs on this machine in a cluster, for as long as it runs."""

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
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.whole_files import PRIVATE, write_atomically

log = logging.getLogger(__name__)

RECORD = "registered.json"
"""The usual name of the record, in the server's data directory."""
_POLL = 0.1
_PLURALS = {"Namespace": "namespaces", "Service": "services", "APIService": "apiservices"}


class Registration:
    """The objects that lead the cluster here. What was there before is changed, and only what was made is removed.

    What was made stands in the file `record`: after a crash, whoever has that can go on with it, or remove it.
    """

    def __init__(self, client: Client, record: Path) -> None:
        self._client = client
        self._record = record
        self._made: list[Json] = json.loads(record.read_bytes()) if record.exists() else []

    async def put(self, objects: Sequence[Json]) -> None:
        """Make or change the objects, and remove what was made before and is not among them. Raises StatusError."""
        for obj in objects:
            await self._put(obj)
        wanted = [_identity(obj) for obj in objects]
        await self._remove([made for made in self._made if made not in wanted])

    async def remove(self) -> None:
        """Never raises: what cannot be removed is logged."""
        await self._remove(self._made)

    async def _put(self, obj: Json) -> None:
        objects = self._objects(obj)
        while not await self._created(objects, obj):
            if not await self._is_going(objects, name_of(obj)):
                if "spec" in obj:
                    await objects.patch(name_of(obj), {"spec": obj["spec"]})
                return
            await asyncio.sleep(_POLL)

    async def _created(self, objects: ResourceClient, obj: Json) -> bool:
        try:
            await objects.create(obj)
        except AlreadyExists:
            return False
        self._write_down([*self._made, _identity(obj)])
        return True

    async def _is_going(self, objects: ResourceClient, name: str) -> bool:
        """Return whether it is being deleted, or gone by now: as after a server that ran just before."""
        try:
            return "deletionTimestamp" in (await objects.get(name))["metadata"]
        except NotFound:
            return True

    async def _remove(self, made: Iterable[Json]) -> None:
        for obj in reversed([*made]):
            try:
                await self._objects(obj).delete(name_of(obj))
            except NotFound:
                pass
            except (StatusError, ConnectionFailed, OSError) as error:
                log.warning("cannot remove %s %s: %s", obj["kind"], name_of(obj), error)
            self._write_down([each for each in self._made if each != obj])

    def _objects(self, obj: Json) -> ResourceClient:
        return self._client.resource(obj["apiVersion"], _PLURALS[obj["kind"]], namespace=namespace_of(obj))

    def _write_down(self, made: list[Json]) -> None:
        self._made = made
        write_atomically(self._record, json.dumps(made).encode(), mode=PRIVATE)


def _identity(obj: Json) -> Json:
    metadata = {"name": name_of(obj), "namespace": namespace_of(obj)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
