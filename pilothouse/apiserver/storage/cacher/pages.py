"""List selections and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop

_TURN = 500  # objects examined before yielding; a few milliseconds with parsing


@dataclass(frozen=True, slots=True)
class CacheKeyRange:
    r"""Keys from `first` (inclusive) to `end` (exclusive), in code point order, which equals UTF-8 byte order.

    A prefix ends with a slash and covers the keys below; any other string is a single key.

        /registry/pods/ns/   →  [/registry/pods/ns/, /registry/pods/ns0)
        /registry/pods/ns/a  →  [/registry/pods/ns/a, /registry/pods/ns/a\\0)
    """

    first: str
    end: str

    @classmethod
    def of(cls, prefix: str, after: str = "") -> CacheKeyRange:
        end = prefix[:-1] + "0" if prefix.endswith("/") else prefix + "\0"
        return cls(max(prefix, after + "\0") if after else prefix, end)

    def __contains__(self, key: str) -> bool:
        return self.first <= key < self.end


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Keys greater than `after`; of the matching objects the first `limit`, or all if `limit` is not positive."""

    prefix: str
    after: str = ""
    limit: int = 0
    matches: Predicate | None = None
    keys: CacheKeyRange = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", CacheKeyRange.of(self.prefix, self.after))


@dataclass(frozen=True, slots=True)
class CachedPage:
    """Objects in key order at `revision`. `remaining` counts objects behind the last one, matching or not; 0 exactly if
    the list is complete."""

    objects: Sequence[StoredObject]
    revision: Revision
    remaining: int = 0


async def select(objects: Sequence[StoredObject], *, matches: Predicate, limit: int, revision: Revision) -> CachedPage:
    """Return the first `limit` matching objects, yielding periodically. `objects` must not change meanwhile."""
    chosen: list[StoredObject] = []
    for seen, obj in enumerate(objects, start=1):
        if matches(obj):
            chosen.append(obj)
            if len(chosen) == limit:
                return CachedPage(chosen, revision, len(objects) - seen)
        if seen % _TURN == 0:
            await yield_to_loop()
    return CachedPage(chosen, revision)
