"""The fence between a cache and its readers: a reader never sees a state older than our own writes.

A cache follows the server with a delay. The fence keeps the result of each write until the cache has reached the write,
and answers reads with the newer of both. A relist, a broken watch or a slow server cannot bring an older state back.

    write(a, version 7)   the cache has a at 5   get(a) → 7     the cache has a at 8          get(a) → 8
    delete(a, uid x)      the cache has uid x    get(a) → None  the cache has uid y           get(a) → uid y
    write(a, version 7)   the cache has no a     get(a) → 7     the cache is complete at ≥ 7  get(a) → None
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, resource_version_of, uid_of

EXPIRY = 60.0
"""Seconds after which the cache is trusted again. Ends the fence after a restore of the server's store."""


@dataclass(frozen=True, slots=True)
class _Write:
    obj: Json | None
    """The written state; None for a deletion."""
    version: int
    """Resource version of the write; for a deletion, of the last known state before it."""
    uid: str
    expires: float


class Fence:
    """Own writes of one resource that its cache has not reached. `position` returns the version of the whole cache."""

    _writes: dict[str, _Write]  # by key

    def __init__(self, position: Callable[[], str] = str, *, clock: Clock = REAL_CLOCK) -> None:
        self._position = position
        self._clock = clock
        self._writes = {}

    def __len__(self) -> int:
        return len(self._writes)

    def written(self, obj: Json) -> None:
        """Record the state that a write returned. An older state than the recorded one is ignored."""
        key, version = meta_namespace_key(obj), version_number(resource_version_of(obj))
        before = self._writes.get(key)
        if before is None or before.uid != uid_of(obj) or before.version <= version:
            self._writes[key] = _Write(obj, version, uid_of(obj), self._clock.now() + EXPIRY)

    def deleted(self, obj: Json) -> None:
        """Record that the object, by its uid, no longer exists. `obj` is its last known state."""
        key, version = meta_namespace_key(obj), version_number(resource_version_of(obj))
        before = self._writes.get(key)
        if before is not None and before.uid == uid_of(obj):
            version = max(version, before.version)
        self._writes[key] = _Write(None, version, uid_of(obj), self._clock.now() + EXPIRY)

    def visible(self, key: str, cached: Json | None) -> Json | None:
        """Return the state for readers: the cached state, or the result of a write that is newer."""
        write = self._writes.get(key)
        if write is None:
            return cached
        if self._reached(write, cached):
            del self._writes[key]
            return cached
        return write.obj

    def pending(self) -> Iterator[str]:
        """Yield the keys with a recorded write."""
        yield from list(self._writes)

    def _reached(self, write: _Write, cached: Json | None) -> bool:
        if self._clock.now() > write.expires:
            return True
        if write.obj is None and cached is not None and uid_of(cached) == write.uid:
            return False
        if cached is not None and version_number(resource_version_of(cached)) >= write.version:
            return True
        return version_number(self._position()) >= write.version


def version_number(resource_version: str) -> int:
    """Return a resource version as a number; 0 for a text without one. Versions of one resource are comparable."""
    return int(resource_version) if resource_version.isdecimal() else 0
