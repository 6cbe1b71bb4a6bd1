"""Converted values that were made lately, so that who reads an object again does not ask the webhook again."""

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
    """A value as a version shows it. It is stale when it would be stored in another way now."""

    value: bytes
    stale: bool


class ConvertedValues:
    """Shared by all that convert. What one revision left under one key never changes, and neither does its conversion.
    The bytes are bounded; what was used least recently goes first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._values: BoundedCache[_Place, ConvertedValue] = BoundedCache(entries=_MAX_VALUES, total_bytes=max_bytes)
        self._owners = count()

    def new_owner(self) -> int:
        """Return a number for one version of one definition, under which its values are kept apart from those of
        others.
        """
        return next(self._owners)

    def get(self, owner: int, key: str, revision: Revision) -> ConvertedValue | None:
        return self._values.get((owner, key, revision))

    def put(self, owner: int, entry: Entry, shown: ConvertedValue) -> None:
        """Keep the value that the entry is shown as."""
        size = len(entry.key) + len(shown.value)
        self._values.put((owner, entry.key, entry.modified), shown, size=size)
