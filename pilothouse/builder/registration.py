"""Registering a server that runs on this machine in a cluster, for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from pilothouse.builder.place import Place, on_this_machine
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controlplane.options.completion import host_address
from pilothouse.machinery.errors import AlreadyExists, NotFound, StatusError
from pilothouse.machinery.objects import Json, name_of, namespace_of

log = logging.getLogger(__name__)

_POLL = 0.1
_PLURALS = {"Namespace": "namespaces", "Service": "services", "APIService": "apiservices"}


class Registration:
    """The objects that lead the cluster here. What was there before is changed, and only what was made is removed."""

    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self._place = place
        self._made: list[Json] = []

    async def add(self, cluster: str, port: int, ca_bundle: str) -> None:
        """`cluster` is the URL by which this machine knows the cluster. Raises StatusError."""
        near = urlsplit(cluster).hostname in ("localhost", "127.0.0.1", "::1")
        host = "localhost" if near else host_address()
        for obj in on_this_machine(self._place, host=host, port=port, ca_bundle=ca_bundle):
            await self._put(obj)

    async def _put(self, obj: Json) -> None:
        objects = self._client.resource(obj["apiVersion"], _PLURALS[obj["kind"]], namespace=namespace_of(obj))
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
        self._made.append(obj)
        return True

    async def _is_going(self, objects: ResourceClient, name: str) -> bool:
        """Return whether it is being deleted, or gone by now: as after a server that ran just before."""
        try:
            return "deletionTimestamp" in (await objects.get(name))["metadata"]
        except NotFound:
            return True

    async def remove(self) -> None:
        """Never raises: what cannot be removed is logged."""
        for obj in reversed(self._made):
            await self._delete(obj)
        self._made.clear()

    async def _delete(self, obj: Json) -> None:
        objects = self._client.resource(obj["apiVersion"], _PLURALS[obj["kind"]], namespace=namespace_of(obj))
        try:
            await objects.delete(name_of(obj))
        except NotFound:
            return
        except (StatusError, OSError) as error:
            log.warning("cannot remove %s %s: %s", obj["kind"], name_of(obj), error)


def names_of_objects(objects: Iterable[Json]) -> list[str]:
    """Return them as kubectl names them."""
    return [f"{obj['kind'].lower()}/{name_of(obj)}" for obj in objects]
