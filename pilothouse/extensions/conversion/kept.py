"""Converted values that were made lately, so that who reads an object again does not ask the webhook again."""

from __future__ import annotations

from collections import OrderedDict

from pilothouse.apiserver.storage.interface import Entry, Revision

_MAX_BYTES = 16 * 1024 * 1024


class KeptValues:
    """What one revision left under one key never changes, and neither does its conversion. The bytes are bounded;
    what was used least recently goes first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max = max_bytes
        self._size = 0
        self._values: OrderedDict[tuple[str, Revision], bytes] = OrderedDict()

    def get(self, key: str, revision: Revision) -> bytes | None:
        found = self._values.get((key, revision))
        if found is not None:
            self._values.move_to_end((key, revision))
        return found

    def put(self, entry: Entry) -> None:
        self._size += len(entry.value) - len(self._values.pop((entry.key, entry.modified), b""))
        self._values[entry.key, entry.modified] = entry.value
        while self._size > self._max:
            _, oldest = self._values.popitem(last=False)
            self._size -= len(oldest)
