"""The durable state and its recent changes.

Recent changes are in memory; older ones are read from the file, on the reader's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pilothouse.apiserver.storage.errors import Compacted, FutureRevision
from pilothouse.apiserver.storage.interface import Batch, Event, Page, Revision
from pilothouse.apiserver.storage.sqlite.history import Span, SqliteKeyRange, Undo, read_events, read_undo
from pilothouse.apiserver.storage.sqlite.maintenance import SqliteCompactor
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread
from pilothouse.apiserver.storage.watching import EventWindow

# Events per read of the file.
_REPLAY_LIMIT = 500


class MvccHistory:
    """All published changes. Changes newer than the state's revision are hidden, even if on disk."""

    def __init__(self, state: StoreState, reader: ConnectionThread, compactor: SqliteCompactor) -> None:
        self.state = state
        self._reader = reader
        self._compactor = compactor
        self._window = EventWindow(state.revision)

    @property
    def revision(self) -> Revision:
        return self.state.revision

    @property
    def compacted(self) -> Revision:
        return self._compactor.compacted

    @property
    def is_open(self) -> bool:
        return self._reader.is_open

    def ensure_open(self) -> None:
        """Raise Unavailable if closed."""
        self._reader.ensure_open()

    def publish(self, events: Sequence[Event]) -> None:
        for event in events:
            self.state.apply(event)
        self._window.extend(events)

    def recent(self, prefix: str, after: Revision) -> list[Event] | None:
        """Return the events after the revision; None if memory lacks some."""
        if not self._window.covers(after):
            return None
        return [event for event in self._window.after(after) if event.key.startswith(prefix)]

    async def replay(self, prefix: str, after: Revision) -> Batch:
        """Return the oldest events after the revision from the file. Raises Compacted."""
        span = Span(SqliteKeyRange.under(prefix), after=after, upto=self.revision)
        return await self._reader.call(partial(read_events, span=span, limit=_REPLAY_LIMIT))

    async def page(self, keys: SqliteKeyRange, *, at: Revision, limit: int) -> Page:
        """Return a page at the revision. Raises Compacted or FutureRevision."""
        if at > self.revision:
            raise FutureRevision(at, self.revision)
        if at < self.compacted:
            raise Compacted(at, self.compacted)
        undo = await self._undo(keys, at)
        return self.state.page_before(undo, keys=keys, limit=limit, revision=at)

    async def _undo(self, keys: SqliteKeyRange, at: Revision) -> Undo:
        """Return the entries at revision `at` of the keys changed since.

        The result matches the state on return: there is no await after the last read of memory.
        """
        undo: Undo = {}
        while not self._window.covers(at):
            upto = self.revision
            older = await self._reader.call(partial(read_undo, span=Span(keys, after=at, upto=upto)))
            undo = {**older, **undo}
            at = upto
        for event in self._window.after(at):
            if event.key in keys:
                undo.setdefault(event.key, event.previous)
        return undo
