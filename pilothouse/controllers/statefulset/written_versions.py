"""Protection against syncs on a cache older than the controller's own writes.

A controller with a stale cache would repeat its writes. The controller records the resourceVersion of each write,
informer handlers record the versions seen, and in between the StatefulSet is not synced.

    versions.wrote("default/web", PODS, created)
    versions.are_seen("default/web")          # False
    versions.saw(PODS, pod)                   # by the informer's handler
    versions.are_seen("default/web")          # True
"""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import Clock
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, resource_version_of

_PATIENCE = 5.0
"""Seconds until the informer's own resourceVersion is trusted: a relist may deliver no event with that version."""


@dataclass(slots=True)
class _Written:
    at: float
    versions: dict[GroupVersionResource, int]


class WrittenVersions:
    """Highest versions written per owner key, and highest versions seen by the informers."""

    def __init__(self, informers: Mapping[GroupVersionResource, SharedIndexInformer], clock: Clock) -> None:
        self._informers = informers
        self._clock = clock
        self._seen = dict.fromkeys(informers, 0)
        self._written: dict[str, _Written] = {}

    def wrote(self, key: str, resource: GroupVersionResource, obj: Json) -> None:
        version = _version(obj)
        if version <= self._seen[resource]:
            return
        written = self._written.setdefault(key, _Written(self._clock.now(), {}))
        written.versions[resource] = max(version, written.versions.get(resource, 0))

    def saw(self, resource: GroupVersionResource, obj: Json) -> None:
        """Record a seen version. Must be called before the handler processes the event."""
        version = _version(obj)
        if version > self._seen[resource]:
            self._seen[resource] = version

    def are_seen(self, key: str) -> bool:
        """Return whether the caches include every write for the owner."""
        written = self._written.get(key)
        if written is None:
            return True
        is_late = self._clock.now() - written.at > _PATIENCE
        if not all(self._reached(resource, is_late) >= version for resource, version in written.versions.items()):
            return False
        self.forget(key)
        return True

    def forget(self, key: str) -> None:
        self._written.pop(key, None)

    def _reached(self, resource: GroupVersionResource, is_late: bool) -> int:
        if not is_late:
            return self._seen[resource]
        return max(self._seen[resource], int(self._informers[resource].last_sync_resource_version or 0))


def _version(obj: Json) -> int:
    version = resource_version_of(obj)
    return int(version) if version.isdigit() else 0
