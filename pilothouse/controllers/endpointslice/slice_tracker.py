"""Generations of slices written by this process, to detect a stale cache.

A sync on a stale cache would create a slice twice or revert an update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.controllers.endpointslice.endpoint import manager_of, service_key
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, metadata, uid_of

_DELETED = -1
SERVICE_INDEX = "service"


class EndpointSliceTracker:
    _generations: dict[str, dict[str, int]]  # by service key and slice uid

    def __init__(self) -> None:
        self._generations = {}

    def should_sync(self, endpoint_slice: Json) -> bool:
        """Return whether the slice was created or changed externally."""
        known = self._of(endpoint_slice).get(uid_of(endpoint_slice))
        return known is None or _generation(endpoint_slice) > known

    def is_stale(self, service: str, slices: Iterable[Json]) -> bool:
        """Return whether the slices are older than this process's writes; terminating slices are never stale."""
        known = dict(self._generations.get(service, {}))
        for endpoint_slice in slices:
            written = known.pop(uid_of(endpoint_slice), 0)
            if not is_deleting(endpoint_slice) and (written == _DELETED or written > _generation(endpoint_slice)):
                return True
        return any(generation != _DELETED for generation in known.values())

    def update(self, endpoint_slice: Json) -> None:
        known = self._generations.setdefault(service_key(endpoint_slice), {})
        known[uid_of(endpoint_slice)] = _generation(endpoint_slice)

    def follow_back(self, old: Json, new: Json) -> None:
        """Forget a slice with a decreased generation: it was restored from a snapshot, so the cache is not stale."""
        if uid_of(old) == uid_of(new) and _generation(new) < _generation(old):
            self._of(new).pop(uid_of(new), None)

    def expect_deletion(self, endpoint_slice: Json) -> None:
        self._generations.setdefault(service_key(endpoint_slice), {})[uid_of(endpoint_slice)] = _DELETED

    def handle_deletion(self, endpoint_slice: Json) -> bool:
        """Record a deletion; return whether this process requested it."""
        known = self._of(endpoint_slice)
        was_expected = known.pop(uid_of(endpoint_slice), _DELETED) == _DELETED
        if not known:
            self.forget(service_key(endpoint_slice))
        return was_expected

    def forget(self, service: str) -> None:
        self._generations.pop(service, None)

    def _of(self, endpoint_slice: Json) -> dict[str, int]:
        return self._generations.get(service_key(endpoint_slice), {})


def _generation(endpoint_slice: Json) -> int:
    return int(metadata(endpoint_slice).get("generation") or 0)


class SliceEvents:
    """Slices managed by one controller: index by service, and detection of external changes."""

    def __init__(self, controller: str, slices: SharedIndexInformer, tracker: EndpointSliceTracker) -> None:
        self._controller = controller
        self._slices = slices.indexer
        self._tracker = tracker
        if SERVICE_INDEX not in slices.indexer.indexers:
            slices.add_indexers({SERVICE_INDEX: lambda endpoint_slice: (service_key(endpoint_slice),)})

    def slices_of(self, service: str) -> list[Json]:
        return [
            endpoint_slice
            for endpoint_slice in self._slices.by_index(SERVICE_INDEX, service)
            if self._is_own(endpoint_slice)
        ]

    def handler(self, changed: Callable[[str], None]) -> ResourceEventHandlerFuncs:
        """Return a handler that calls `changed` with services whose slices were changed externally."""

        def enqueue(*slices: Json) -> None:
            for key in filter(None, map(service_key, slices)):
                changed(key)

        def on_add(new: Json) -> None:
            if self._is_own(new) and self._tracker.should_sync(new):
                enqueue(new)

        def on_update(old: Json, new: Json) -> None:
            if service_key(old) != service_key(new):
                enqueue(old, new)
            elif self._is_own(old) != self._is_own(new):
                enqueue(new)
            else:
                self._tracker.follow_back(old, new)
                on_add(new)

        def on_delete(obj: Deleted) -> None:
            old = last_known_state(obj)
            if old is not None and self._is_own(old) and not self._tracker.handle_deletion(old):
                enqueue(old)

        return ResourceEventHandlerFuncs(add=on_add, update=on_update, delete=on_delete)

    def _is_own(self, endpoint_slice: Json) -> bool:
        return manager_of(endpoint_slice) == self._controller
