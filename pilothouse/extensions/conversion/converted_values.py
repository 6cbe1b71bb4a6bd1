"""Cache of converted values; spares the webhook on repeated reads."""

from __future__ import annotations

from itertools import count
from typing import TypeAlias

from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass

_Place: TypeAlias = tuple[int, str, Revision]
_MAX_VALUES, _MAX_BYTES = 100_000, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConvertedValue:
    """A value in one served version; stale if its stored form would differ now."""

    value: bytes
    stale: bool


class ConvertedValues:
    """An LRU cache, shared by all converting stores and bounded in bytes. A (key, revision) never changes, and neither
    does its conversion."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._values: BoundedCache[_Place, ConvertedValue] = BoundedCache(entries=_MAX_VALUES, total_bytes=max_bytes)
        self._owners = count()

    def new_owner(self) -> int:
        """Return a unique owner id for one version of one definition."""
        return next(self._owners)

    def get(self, owner: int, key: str, revision: Revision) -> ConvertedValue | None:
        return self._values.get((owner, key, revision))

    def put(self, owner: int, entry: Entry, shown: ConvertedValue) -> None:
        """Cache the converted value of an entry."""
        size = len(entry.key) + len(shown.value)
        self._values.put((owner, entry.key, entry.modified), shown, size=size)
