"""Compaction.

First the new oldest revision becomes durable, and older reads are refused. Then unreachable rows are deleted in small
steps, so that writes wait for one step at most. A crash in between leaves rows for the next sweep.
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

# Revisions per step.
_STEP = 200

_log = logging.getLogger(__name__)


class SqliteCompactor:
    """Compacts step by step on the writer's thread, between batches."""

    def __init__(self, writer: ConnectionThread, state: StoreState, *, compacted: Revision, swept: Revision) -> None:
        self.compacted = compacted
        self.changed: Callable[[], None] = lambda: None
        """Called after a change of `compacted`."""
        self._swept = swept
        self._writer = writer
        self._state = state
        self._one_at_a_time = asyncio.Lock()

    async def compact(self, revision: Revision) -> None:
        """Compact to the revision. Raises FutureRevision or Unavailable."""
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
        """Drop history older than one interval, every interval."""
        older = self.compacted
        while True:
            try:
                await self.compact(older)
            except StorageError as error:
                _log.warning("compaction to revision %d failed, to be tried again: %s", older, error)
            older = self._state.revision
            await clock.sleep(interval)


def _delete_replaced(connection: sqlite3.Connection, *, after: Revision, upto: Revision) -> None:
    """Delete the rows replaced in (after, upto], and the deletes among these changes."""
    span = {"after": after, "upto": upto}
    changes = "revision > :after AND revision <= :upto"
    replaced = f"SELECT previous FROM history WHERE {changes} AND previous IS NOT NULL"
    with transaction(connection):
        connection.execute(f"DELETE FROM history WHERE revision IN ({replaced})", span)
        connection.execute(f"DELETE FROM history WHERE {changes} AND value IS NULL", span)
        write_meta(connection, "swept", upto)
