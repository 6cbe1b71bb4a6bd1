"""Watches of the embedded store: what memory has no longer is read from the file."""

from __future__ import annotations

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.sqlite.chronicle import Chronicle
from pilothouse.apiserver.storage.watching.queued_watch import QueuedWatch
from pilothouse.apiserver.storage.watching.watchers import StoreWatchers


class StoreWatch(QueuedWatch):
    def __init__(self, chronicle: Chronicle, watchers: StoreWatchers, *, prefix: str, after: Revision) -> None:
        self._chronicle = chronicle
        self._watchers = watchers
        super().__init__(prefix=prefix, after=after)

    async def request_progress(self) -> None:
        self.tell_progress()

    @property
    def _newest(self) -> Revision:
        return self._chronicle.revision

    def _join(self) -> list[Event] | None:
        self._chronicle.ensure_open()
        if self._reached < self._chronicle.compacted:
            raise Compacted(self._reached, self._chronicle.compacted)
        events = self._chronicle.recent(self.prefix, self._reached)
        if events is not None:
            self._watchers.add(self)
        return events

    def _leave(self) -> None:
        self._watchers.discard(self)

    async def _replay(self) -> Batch:
        return await self._chronicle.replay(self.prefix, self._reached)
