"""Converted values that were made lately, so that who reads an object again does not ask the webhook again."""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from typing import TypeAlias

from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.machinery.dataclass import dataclass

_Place: TypeAlias = tuple[int, str, Revision]
_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as a version shows it. It is stale when it would be stored in another way now."""

    value: bytes
    stale: bool


class KeptValues:
    """Shared by all that convert. What one revision left under one key never changes, and neither does its conversion.
    The bytes are bounded; what was used least recently goes first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max = max_bytes
        self._size = 0
        self._values: OrderedDict[_Place, Shown] = OrderedDict()
        self._owners = count()

    def new_owner(self) -> int:
        """For one version of one definition; what it keeps is its own."""
        return next(self._owners)

    def get(self, owner: int, key: str, revision: Revision) -> Shown | None:
        place = (owner, key, revision)
        found = self._values.get(place)
        if found is not None:
            self._values.move_to_end(place)
        return found

    def put(self, owner: int, entry: Entry, shown: Shown) -> None:
        """What the entry is shown as."""
        place = (owner, entry.key, entry.modified)
        before = self._values.pop(place, None)
        self._size += len(shown.value) - (len(before.value) if before else 0)
        self._values[place] = shown
        while self._size > self._max:
            _, oldest = self._values.popitem(last=False)
            self._size -= len(oldest.value)
