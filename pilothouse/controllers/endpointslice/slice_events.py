"""Slices managed by one controller: index by service, and detection of external changes."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.controllers.endpointslice.labels import manager_of, service_key
from pilothouse.controllers.endpointslice.slice_tracker import EndpointSliceTracker
from pilothouse.machinery.objects import Json

SERVICE_INDEX = "service"


class SliceEvents:
    def __init__(self, controller: str, slices: SharedIndexInformer, tracker: EndpointSliceTracker) -> None:
        self._controller = controller
        self._slices = slices.indexer
        self._tracker = tracker
        if SERVICE_INDEX not in slices.indexer.indexers:
            slices.add_indexers({SERVICE_INDEX: lambda each: (service_key(each),)})

    def slices_of(self, service: str) -> list[Json]:
        return [each for each in self._slices.by_index(SERVICE_INDEX, service) if self._is_own(each)]

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

    def _is_own(self, each: Json) -> bool:
        return manager_of(each) == self._controller
