"""The durable state in memory: entries by key, and their revision.

A page at an older revision is the current state with later changes undone:

    now   a@5 c@7 d@3        undo  a → a@2, b → b@4, c → nothing        then  a@2 b@4 d@3
"""

from __future__ import annotations

from collections.abc import Iterable

from sortedcontainers import SortedDict

from pilothouse.apiserver.storage.interface import Entry, Event, Page, Revision
from pilothouse.apiserver.storage.sqlite.history import SqliteKeyRange, StoreSnapshot, Undo
from pilothouse.apiserver.storage.sqlite.schema import damaged


class StoreState:
    """The state visible to reads, changed on the event loop only, by durable changes only."""

    def __init__(self, snapshot: StoreSnapshot) -> None:
        self.revision: Revision = snapshot.revision
        self._entries: SortedDict = SortedDict(snapshot.entries)
        self._damaged = snapshot.damaged

    def get(self, key: str) -> Entry | None:
        """Return the entry for writers; damaged values are empty."""
        entry: Entry | None = self._entries.get(key)
        return entry

    def read(self, key: str) -> Entry | None:
        """Return the entry for readers. Raises Undecodable for damaged entries."""
        entry: Entry | None = self._entries.get(key)
        if self._damaged and entry is not None:
            self._readable([entry])
        return entry

    def apply(self, event: Event) -> None:
        if event.entry is None:
            del self._entries[event.key]
        else:
            self._entries[event.key] = event.entry
        if self._damaged:
            self._damaged.pop(event.key, None)
        self.revision = event.revision

    def count(self, keys: SqliteKeyRange) -> int:
        positions = self._positions(keys)
        return len(positions)

    def page(self, keys: SqliteKeyRange, limit: int) -> Page:
        """Return the first `limit` entries of the range, or all if `limit` is not positive. Raises Undecodable."""
        positions = self._positions(keys)
        taken = positions[:limit] if limit > 0 else positions
        return Page(self._readable(self._slice(taken)), self.revision, len(positions) - len(taken))

    def page_before(self, undo: Undo, *, keys: SqliteKeyRange, limit: int, revision: Revision) -> Page:
        """Return the page at `revision`, given the changes since then in the range."""
        positions = self._positions(keys)
        restored = [entry for entry in undo.values() if entry is not None]
        total = len(positions) - sum(key in self._entries for key in undo) + len(restored)
        # Undoing hides at most len(undo) entries, so these candidates always suffice.
        candidates = self._slice(positions[: limit + len(undo)] if limit > 0 else positions)
        unchanged = (entry for entry in candidates if entry.key not in undo)
        entries = sorted([*unchanged, *restored], key=lambda entry: entry.key)
        entries = entries[:limit] if limit > 0 else entries
        return Page(self._readable(entries), revision, total - len(entries))

    def _readable(self, entries: list[Entry]) -> list[Entry]:
        if self._damaged:
            for entry in entries:
                if self._damaged.get(entry.key) == entry.modified:
                    raise damaged(entry.key, entry.modified)
        return entries

    def _positions(self, keys: SqliteKeyRange) -> range:
        """Return the positions of the range; slices made with them never exceed it."""
        first: int = self._entries.bisect_left(keys.start)
        last: int = len(self._entries) if keys.end is None else self._entries.bisect_left(keys.end)
        return range(first, max(first, last))

    def _slice(self, positions: range) -> list[Entry]:
        keys: Iterable[str] = self._entries.keys()[positions.start : positions.stop]
        return list(map(self._entries.__getitem__, keys))
