"""The generations of slices that this process has written, so that a cache that lags behind is not taken for the truth.

A sync that rests on an old cache would create a slice twice, or undo an update.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.endpointslice.labels import service_key
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, metadata, uid_of

_DELETED = -1


class EndpointSliceTracker:
    _generations: dict[str, dict[str, int]]  # by the key of the service and the uid of the slice

    def __init__(self) -> None:
        self._generations = {}

    def should_sync(self, endpoint_slice: Json) -> bool:
        """Whether somebody else made or changed the slice."""
        known = self._of(endpoint_slice).get(uid_of(endpoint_slice))
        return known is None or _generation(endpoint_slice) > known

    def is_stale(self, service: str, slices: Iterable[Json]) -> bool:
        """Whether the slices are older than what this process has written. One that waits to be deleted is not."""
        known = dict(self._generations.get(service, {}))
        for each in slices:
            written = known.pop(uid_of(each), 0)
            if not is_deleting(each) and (written == _DELETED or written > _generation(each)):
                return True
        return any(generation != _DELETED for generation in known.values())

    def update(self, endpoint_slice: Json) -> None:
        known = self._generations.setdefault(service_key(endpoint_slice), {})
        known[uid_of(endpoint_slice)] = _generation(endpoint_slice)

    def follow_back(self, old: Json, new: Json) -> None:
        """A slice that was put back to a snapshot has an older generation, and is the truth all the same: the cache is
        behind only if its last word is."""
        if uid_of(old) == uid_of(new) and _generation(new) < _generation(old):
            self._of(new).pop(uid_of(new), None)

    def expect_deletion(self, endpoint_slice: Json) -> None:
        self._generations.setdefault(service_key(endpoint_slice), {})[uid_of(endpoint_slice)] = _DELETED

    def handle_deletion(self, endpoint_slice: Json) -> bool:
        """Whether the deletion was this process's own."""
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
