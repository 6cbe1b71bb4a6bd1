"""Forgetting history.

First the new oldest revision is made durable and reads older than it are refused; then the rows that nobody can ask
for any more are deleted, few at a time, so that writes wait for one small step at most. A crash between the steps
only leaves rows that the next sweep deletes.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from functools import partial

from pilothouse.apiserver.storage.errors import FutureRevision, StorageError
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.sqlite.clock import WallClock
from pilothouse.apiserver.storage.sqlite.schema import transaction, write_meta
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread

# Revisions that one step of a sweep looks at.
_STEP = 200

_log = logging.getLogger(__name__)


class SqliteCompactor:
    """Compacts one step at a time, on the writer's thread, between its batches."""

    def __init__(self, writer: ConnectionThread, state: StoreState, *, compacted: Revision, swept: Revision) -> None:
        self.compacted = compacted
        self.changed: Callable[[], None] = lambda: None
        """Called when `compacted` has changed."""
        self._swept = swept
        self._writer = writer
        self._state = state
        self._one_at_a_time = asyncio.Lock()

    async def compact(self, revision: Revision) -> None:
        """Raises FutureRevision, Unavailable."""
        if revision > self._state.revision:
            raise FutureRevision(revision, self._state.revision)
        async with self._one_at_a_time:
            if revision > self.compacted:
                await self._writer.call(partial(write_meta, name="compacted", value=revision))
                self.compacted = revision
                self.changed()
            while self._swept < self.compacted:
                upto = min(self._swept + _STEP, self.compacted)
                await self._writer.call(partial(_delete_replaced, after=self._swept, upto=upto))
                self._swept = upto

    async def run(self, clock: WallClock, interval: float) -> None:
        """Every interval, forgets what is older than one interval."""
        older = self.compacted
        while True:
            try:
                await self.compact(older)
            except StorageError as error:
                _log.warning("compaction to revision %d failed, to be tried again: %s", older, error)
            older = self._state.revision
            await clock.sleep(interval)


def _delete_replaced(connection: sqlite3.Connection, *, after: Revision, upto: Revision) -> None:
    """Deletes what the changes in (after, upto] replaced, and the deletes among them, which leave nothing to keep."""
    span = {"after": after, "upto": upto}
    changes = "revision > :after AND revision <= :upto"
    replaced = f"SELECT previous FROM history WHERE {changes} AND previous IS NOT NULL"
    with transaction(connection):
        connection.execute(f"DELETE FROM history WHERE revision IN ({replaced})", span)
        connection.execute(f"DELETE FROM history WHERE {changes} AND value IS NULL", span)
        write_meta(connection, "swept", upto)
