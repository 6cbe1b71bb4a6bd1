"""Holds back what the server's own workers write while the state that they act upon is replaced.

Controllers, the scheduler and simulated nodes decide by what their informers show. A decision from before a restore
must not be carried out behind it: pods of a set that is no more would come back. So their writes wait while the gate
is closed, and are then refused; the workers look again, and by then their informers show what is. What comes later
still, as events do that are told when there is time, is refused where it names an object that is gone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.machinery.errors import Conflict

_READS = ("get", "list", "watch")
_UID = re.compile(rb'"uid":"([^"]+)"')
_MOST_BODY = 3 * 1024 * 1024
_PATIENCE = 1.0
"""Seconds in which a write that has begun ends, unless it waits for somebody else's webhook."""
_REPLACED = "the cluster was put back to a snapshot meanwhile"


class WorkerGate:
    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._running = 0
        self._gone: frozenset[bytes] = frozenset()  # the uids of what the last restore took away
        self._idle = asyncio.Event()
        self._idle.set()

    def before(self, handler: Handler) -> Handler:
        """Return the handler for calls of workers."""

        async def pass_through(request: Request) -> Response:
            if request.info.verb in _READS:
                return await handler(request)
            if await self._comes_too_late(request):
                raise Conflict.of(request.info.group_resource, request.info.name, _REPLACED)
            self._running += 1
            self._idle.clear()
            try:
                return await handler(request)
            finally:
                self._running -= 1
                if not self._running:
                    self._idle.set()

        return pass_through

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Writes that have begun end before the block begins; others come too late."""
        self._open.clear()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._idle.wait()
        except TimeoutError:
            pass  # whom it waits for may wait for us
        try:
            yield
        finally:
            self._open.set()

    def taken_away(self, entries: Sequence[Entry]) -> None:
        """Let nobody refer to these objects any more. The first uid in an object is its own."""
        found = (_UID.search(entry.value) for entry in entries)
        self._gone = frozenset(match[1] for match in found if match)

    async def _comes_too_late(self, request: Request) -> bool:
        if not self._open.is_set():
            await self._open.wait()
            return True
        if request.info.verb != "create" or not self._gone:
            return False
        return not self._gone.isdisjoint(_UID.findall(await request.read_body(_MOST_BODY)))
