"""The state that the connections of one server share: the handler, a coarse clock, the Date header, who is connected.

The clock ticks about once a second. Connections note deadlines by it and are swept when it ticks,
so that no request pays for timers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Protocol

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.http1.parser import chosen_parsers
from pilothouse.apiserver.serving.limits import Limits

NEVER = float("inf")
LAST_CALLS = (0.05, 0.05)
"""Seconds in which a request that was on its way when the server stopped is answered, rather than reset. They are in
parts, because an event loop that was held up may end a wait before it reads what came meanwhile, but not two."""


class Connection(Protocol):
    """A client's connection, once it speaks HTTP (or what it was upgraded to)."""

    def sweep(self, now: float) -> None:
        """Ends what has waited too long."""

    def drain(self) -> None:
        """Takes no more requests; closes when those under way are answered."""

    def abort(self) -> None:
        """Closes at once."""


class ServingState:
    def __init__(self, handler: Handler, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.handler = handler
        self.limits = limits
        self.parsers = chosen_parsers()
        self.connections: set[Connection] = set()
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
        """Returns when nobody is connected."""
        while self.connections:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def sweep(self) -> None:
        for connection in tuple(self.connections):
            connection.sweep(self.now)
