"""The store's current revision, read once for concurrent callers.

An answer is shared only by callers that asked before its read began: it may miss a write that returned later.

    a asks → read 1 begins      b asks → read 2 begins      c and d ask → they share read 3, when 1 or 2 has ended
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.storage.interface import Revision

_AT_A_TIME = 2


class RevisionReader:
    _next: asyncio.Task[Revision] | None  # not started yet

    def __init__(self, read: Callable[[], Awaitable[Revision]]) -> None:
        self._read = read
        self._next = None
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def current(self) -> Revision:
        if self._next is None:
            self._next = asyncio.create_task(self._read_in_turn())
        # A cancelled caller must not cancel the shared read.
        return await asyncio.shield(self._next)

    async def _read_in_turn(self) -> Revision:
        async with self._turns:
            self._next = None
            return await self._read()
