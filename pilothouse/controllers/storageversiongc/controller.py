"""storageversion-garbage-collector-controller: forgets what servers that are gone said about how they store."""

from __future__ import annotations

from datetime import UTC, datetime

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.controller.runner import Controller
from pilothouse.controllers.context import ControllerContext, ObjectSelection
from pilothouse.controllers.resources import LEASES, STORAGE_VERSIONS
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of
from pilothouse.machinery.times import format_time

_SYSTEM = ObjectSelection(namespace="kube-system")
_COMPONENT, _API_SERVER = "apiserver.kubernetes.io/identity", "kube-apiserver"
_NAME = "storage_version_garbage_collector"
_EQUAL = "AllEncodingVersionsEqual"


async def run(context: ControllerContext) -> None:
    await _StorageVersions(context).run()


class _StorageVersions:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._objects = context.client.for_resource(STORAGE_VERSIONS)
        self._versions, self._leases = context.informer(STORAGE_VERSIONS), context.informer(LEASES, _SYSTEM)
        self._queue = context.queue(f"{_NAME}_storageversions", str)

    async def run(self) -> None:
        self._leases.add_event_handler(ResourceEventHandlerFuncs(delete=self._lease_deleted))
        await self._leases.wait_synced()
        self._versions.add_event_handler(
            ResourceEventHandlerFuncs(add=self._version_changed, update=lambda old, new: self._version_changed(new))
        )
        versions = Controller(_NAME, self._sync, caches=(self._versions,), queue=self._queue, clock=self._context.clock)
        await versions.run()

    def _version_changed(self, version: Json) -> None:
        known = (self._leases.indexer.get_by_key(f"kube-system/{server}") for server in _servers(version))
        if not all(lease is not None and _is_of_a_server(lease) for lease in known):
            self._queue.add(name_of(version))

    def _lease_deleted(self, deleted: Deleted) -> None:
        lease = last_known_state(deleted)
        if lease is not None and _is_of_a_server(lease):
            for version in self._versions.indexer.list():
                if name_of(lease) in _servers(version):
                    self._queue.add(name_of(version))

    async def _sync(self, name: str) -> None:
        try:
            version = await self._objects.get(name)
            gone = {server for server in _servers(version) if not await self._is_there(server)}
            if not gone:
                return
            if remaining := [each for each in _said(version) if each["apiServerID"] not in gone]:
                now = datetime.fromtimestamp(self._context.clock.wall(), UTC)
                await self._objects.update_status(with_versions(version, remaining, now))
            else:
                await self._objects.delete(name)
        except NotFound:
            return

    async def _is_there(self, server: str) -> bool:
        try:
            lease = await self._context.client.for_resource(LEASES, namespace="kube-system").get(server)
        except NotFound:
            return False
        return _is_of_a_server(lease)


def with_versions(version: Json, said: list[Json], now: datetime) -> Json:
    """Return the object with what these servers say, and whether they agree."""
    old = version.get("status") or {}
    encodings = {each["encodingVersion"] for each in said}
    common = encodings.pop() if len(encodings) == 1 else None
    word = "set" if common else "unset"
    condition = {
        "type": _EQUAL,
        "status": "True" if common else "False",
        "observedGeneration": metadata(version).get("generation"),
        "lastTransitionTime": format_time(now),
        "reason": f"CommonEncodingVersion{word.capitalize()}",
        "message": f"Common encoding version {word}",
    }
    before: Json = next((each for each in old.get("conditions") or () if each["type"] == _EQUAL), {})
    switched = common and old.get("commonEncodingVersion") and common != old["commonEncodingVersion"]
    if before.get("status") == condition["status"] and not switched:
        condition["lastTransitionTime"] = before.get("lastTransitionTime")
    others = [each for each in old.get("conditions") or () if each["type"] != _EQUAL]
    status = {"storageVersions": said, "conditions": [*others, condition]}
    return {**version, "status": status | ({"commonEncodingVersion": common} if common else {})}


def _said(version: Json) -> list[Json]:
    return (version.get("status") or {}).get("storageVersions") or []


def _servers(version: Json) -> set[str]:
    return {each["apiServerID"] for each in _said(version)}


def _is_of_a_server(lease: Json) -> bool:
    return labels_of(lease).get(_COMPONENT) == _API_SERVER
