"""State shared by the connections of a server: handler, coarse clock, Date header and connections.

The clock ticks about once a second. Connections compare their deadlines on each tick, so requests need no timers.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from typing import Protocol

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.http1.parser import chosen_parsers
from pilothouse.apiserver.serving.limits import Limits

NEVER = float("inf")
LAST_CALLS = (0.05, 0.05)
"""Grace periods in seconds for requests in flight at shutdown, which are answered instead of reset. There are two
periods, because a delayed event loop may end a single wait before it reads pending input."""

_BULK_TURNS = 4


class Connection(Protocol):
    """A client connection after the handshake, including upgraded connections."""

    def sweep(self, now: float) -> None:
        """Enforce deadlines."""

    def drain(self) -> None:
        """Refuse new requests, and close after the requests in progress."""

    def abort(self) -> None:
        """Close immediately."""


class BulkTurns:
    """Turns of connections with a large input: a few per turn of the loop, so that small requests hardly wait."""

    _waiting: deque[Callable[[], None]]

    def __init__(self) -> None:
        self._waiting = deque()

    def wait(self, turn: Callable[[], None]) -> None:
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        turns = [self._waiting.popleft() for _ in range(min(_BULK_TURNS, len(self._waiting)))]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        for turn in turns:
            turn()


class ServingState:
    def __init__(self, handler: Handler, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.handler = handler
        self.limits = limits
        self.parsers = chosen_parsers()
        self.connections: set[Connection] = set()
        self.bulk_turns = BulkTurns()
        self._empty: asyncio.Future[None] | None = None
        self.draining = False
        self._clock = clock
        self.tick()

    def tick(self) -> None:
        self.now = self._clock()
        self.date = formatdate(usegmt=True).encode()
        self.date_header = (b"date", self.date)
        self.date_line = b"date: " + self.date + b"\r\n"

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if not self.connections and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def empty(self) -> None:
        """Wait until all connections are closed."""
        while self.connections:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def sweep(self) -> None:
        for connection in tuple(self.connections):
            connection.sweep(self.now)
