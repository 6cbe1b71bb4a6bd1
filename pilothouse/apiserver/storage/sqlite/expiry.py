"""Expiry of keys with a TTL: an expired key is deleted like any other, with its own revision."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.sqlite.clock import WallClock
from pilothouse.apiserver.storage.sqlite.history import Deadline

# Maximum delay in seconds, as in etcd.
_PERIOD = 0.5

# Keys deleted together.
_AT_ONCE = 1000

_log = logging.getLogger(__name__)

Delete: TypeAlias = Callable[[str, Revision], Awaitable[Entry]]


class Expiry:
    """Deadlines of durable entries. The deadline of a replaced or deleted entry is void.

    While the store is open, keys expire by the monotonic clock, as in etcd: setting the wall clock has no effect.
    """

    def __init__(self, stored: Iterable[Deadline], clock: WallClock) -> None:
        """`stored`: the deadlines in the file."""
        ahead = clock.monotonic() - clock.now()
        self._deadlines = [Deadline(each.at + ahead, each.revision, each.key) for each in stored]
        heapq.heapify(self._deadlines)

    def add(self, deadline: Deadline) -> None:
        heapq.heappush(self._deadlines, deadline)

    async def run(self, clock: WallClock, delete: Delete) -> None:
        while True:
            now = clock.monotonic()
            due: list[Deadline] = []
            while self._deadlines and self._deadlines[0].at <= now and len(due) < _AT_ONCE:
                due.append(heapq.heappop(self._deadlines))
            outcomes = await asyncio.gather(*(self._expire(deadline, delete) for deadline in due))
            left = [deadline for deadline, gone in zip(due, outcomes, strict=True) if not gone]
            for deadline in left:
                self.add(deadline)
            if left:
                _log.warning("%d keys have expired but the store cannot delete them now", len(left))
            await clock.sleep(_PERIOD)

    async def _expire(self, deadline: Deadline, delete: Delete) -> bool:
        """Return whether the deadline is settled: the entry is deleted or was replaced."""
        try:
            await delete(deadline.key, deadline.revision)
        except (KeyNotFound, RevisionConflict):
            return True
        except Unavailable:
            return False
        return True
