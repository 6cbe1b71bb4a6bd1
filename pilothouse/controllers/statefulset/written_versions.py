"""Not acting on a cache that is older than one's own writes.

A controller whose caches have not yet shown what it wrote would do it again. So it notes the resource version of
each write, its informers' handlers note how far they have come, and a set is left alone in between.

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
"""After a list that replaced a broken watch, no event may tell of a version: then the informer's own word is taken."""


@dataclass(slots=True)
class _Written:
    at: float
    versions: dict[GroupVersionResource, int]


class WrittenVersions:
    """The newest versions written for each owner, by its key, and the newest that the informers have shown."""

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
        """Must be called before anything is done about the change that the handler was told of."""
        version = _version(obj)
        if version > self._seen[resource]:
            self._seen[resource] = version

    def are_seen(self, key: str) -> bool:
        """Whether the caches show everything that was written for the owner."""
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
