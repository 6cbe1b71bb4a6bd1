"""The store's current revision, read once for all who ask at about the same time.

An answer is shared only by those who asked before its read began: it may be older than a write that returned later.

    a asks → read 1 begins      b and c ask → they wait for read 1 to end, then share read 2
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.storage.interface import Revision


class RevisionReader:
    _latest: asyncio.Task[Revision] | None  # the read begun last, or to begin next
    _waiting: bool  # whether it has yet to begin, and may be shared

    def __init__(self, read: Callable[[], Awaitable[Revision]]) -> None:
        self._read = read
        self._latest = None
        self._waiting = False

    async def current(self) -> Revision:
        if self._latest is None or not self._waiting:
            self._waiting = True
            self._latest = asyncio.create_task(self._read_after(self._latest))
        # One caller that gives up must not take the answer from the others.
        return await asyncio.shield(self._latest)

    async def _read_after(self, earlier: asyncio.Task[Revision] | None) -> Revision:
        if earlier is not None and not earlier.done():
            await asyncio.wait([earlier])
        self._waiting = False
        return await self._read()
