"""A source that is read to its end by somebody who does not count, and that must not change meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pilothouse.apiserver.storage.backup.model import BackupError, SavedEntry, Source
from pilothouse.apiserver.storage.interface import Revision


class CountedSource:
    """The same entries; `seen` says how many they were."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.revision, self.prefix = source.revision, source.prefix
        self.seen = 0

    async def entries(self) -> AsyncIterator[SavedEntry]:
        """Raises BackupError behind the last one, where the store has changed since the first."""
        async for entry in self._source.entries():
            self.seen += 1
            yield entry
        if (now := await self.newest()) != self.revision:
            raise BackupError(
                f"the store changed during the copy, from revision {self.revision} to {now}: "
                "stop its servers and try again; the new store is still empty"
            )

    async def newest(self) -> Revision:
        return await self._source.newest()
