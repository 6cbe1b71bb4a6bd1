"""Services and their EndpointSlices from the watch caches, without access to the store.

Results are cached while the objects do not change, because proxies look up the same Service for every request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.selection import SelectionPredicate
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.webhook.service_resolver import ServiceUnresolved
from pilothouse.kube.core.services.resource import SERVICES
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES, SERVICE_NAME_LABEL
from pilothouse.kube.registries import Registries
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import labels

_log = logging.getLogger(__name__)

_RETRY = 0.5
_KEPT, _KEPT_BYTES = 1000, 8 << 20
_TIMES_ITS_JSON = 6
"""Estimated size ratio of a parsed object to its JSON."""


@dataclass(frozen=True, slots=True)
class _FoundService:
    stored: StoredObject
    service: Json


@dataclass(frozen=True, slots=True)
class _FoundSlices:
    revision: int
    slices: Sequence[Json]


class ServiceLister:
    """Raises ServiceUnresolved if the watch caches are not ready. Callers must not modify results."""

    _found: BoundedCache[tuple[str, str], _FoundService]  # (namespace, name) -> service
    _found_slices: BoundedCache[tuple[str, str], _FoundSlices]

    def __init__(self, registries: Registries) -> None:
        self._services = registries.open(SERVICES)
        self._slices = registries.open(ENDPOINT_SLICES)
        self._found = BoundedCache(entries=_KEPT, total_bytes=_KEPT_BYTES)
        self._found_slices = BoundedCache(entries=_KEPT, total_bytes=_KEPT_BYTES)

    async def find(self, namespace: str, name: str) -> Json | None:
        try:
            stored = await self._services.known(namespace, name)
        except BadRequest:
            return None  # invalid names cannot exist
        except StorageError as error:
            raise ServiceUnresolved(str(error)) from error
        return None if stored is None else self._parsed(namespace, name, stored)

    def _parsed(self, namespace: str, name: str, stored: StoredObject) -> Json:
        cached = self._found.get((namespace, name))
        if cached is None or cached.stored is not stored:
            cached = _FoundService(stored, stored.parse())
            self._found.put((namespace, name), cached, size=512 + _TIMES_ITS_JSON * len(stored.body))
        return cached.service

    async def slices(self, namespace: str, service: str) -> Sequence[Json]:
        revision, cached = self._slices.known_revision, self._found_slices.get((namespace, service))
        if cached is not None and cached.revision == revision and self._slices.ready:
            return cached.slices
        try:
            page = await self._slices.list_known(
                namespace, matches=SelectionPredicate(labels.from_set({SERVICE_NAME_LABEL: service}))
            )
        except StorageError as error:
            raise ServiceUnresolved(str(error)) from error
        stored = page.objects
        slices = [slice_.parse() for slice_ in stored]
        size = 512 + _TIMES_ITS_JSON * sum(len(slice_.body) for slice_ in stored)
        self._found_slices.put((namespace, service), _FoundSlices(revision, slices), size=size)
        return slices

    async def follow(self, changed: Callable[[str, str], None], anything: Callable[[], None]) -> None:
        """Call `changed(namespace, name)` for each change of a Service or of its EndpointSlices, until cancelled.

        Call `anything` if changes may have been missed.
        """
        owners = _SliceOwners(changed)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_follow(self._services, lambda event: changed(*_service_of(event)), anything))
            tasks.create_task(_follow(self._slices, owners.tell, anything, from_the_start=True))


class _SliceOwners:
    """Tracks the Service of each EndpointSlice: a slice with a new owner concerns both Services."""

    _owners: dict[str, tuple[str, str]]  # key of the slice -> (namespace, name)

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._owners = {}

    def tell(self, event: WatchEvent) -> None:
        key, now = (
            event.object.key,
            (event.object.fields["metadata.namespace"], event.object.labels.get(SERVICE_NAME_LABEL, "")),
        )
        before = self._owners.pop(key, now)
        if event.type != EventType.DELETED:
            self._owners[key] = now
        for service in {before, now}:
            self._changed(*service)


async def _follow(
    registry: RegistryStore,
    tell: Callable[[WatchEvent], None],
    anything: Callable[[], None],
    *,
    from_the_start: bool = False,
) -> None:
    while True:
        try:
            watcher = await registry.watch_known(send_initial_events=from_the_start)
            anything()
            try:
                async for event in watcher:
                    tell(event)
            finally:
                watcher.abandon()
        except StorageError as error:
            _log.warning("cannot watch %s: %s", registry.resource.names.plural, error)
        await asyncio.sleep(_RETRY)


def _service_of(event: WatchEvent) -> tuple[str, str]:
    fields = event.object.fields
    return fields["metadata.namespace"], fields["metadata.name"]
