"""Pacing: limits the requests started per turn of the event loop.

All requests share a processor. A started request runs until its first wait, and delays later arrivals meanwhile. If all
requests with seats started at once, a newcomer would wait for all of them.

    limit 4, seats for all: 30 requests of flow A, then one of flow B     A A A A | B A A A | A A A A | …

Each turn has a fixed cost, so a single active flow may start more requests per turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush

_ALONE = 4
"""Factor of the limit while a single flow is active."""
_REMEMBERED = 1000
"""Turns for which a flow counts as active after its last request."""


class Line:
    """The requests of a priority level that wait to start.

    Flows take turns, spaced by the weight of their requests. A new flow starts at the current position.
    """

    __slots__ = ("_at", "_flows", "_numbers", "_order")

    def __init__(self) -> None:
        self._at = 0  # position of the last started request
        self._numbers = 0
        self._flows: dict[int, deque[tuple[asyncio.Future[None], int]]] = {}  # flow → (turn, weight), oldest first
        self._order: list[tuple[int, int, int]] = []  # heap of (position, arrival, flow)

    def add(self, turn: asyncio.Future[None], flow: int, weight: int) -> None:
        waiting = self._flows.get(flow)
        if waiting is None:
            waiting = self._flows[flow] = deque()
            self._push(self._at, flow)
        waiting.append((turn, weight))

    def next(self) -> asyncio.Future[None] | None:
        """Remove and return the next request, or None for an empty line."""
        while self._order:
            self._at, _, flow = heappop(self._order)
            waiting = self._flows[flow]
            turn, weight = waiting.popleft()
            if waiting:
                self._push(self._at + weight, flow)
            else:
                del self._flows[flow]
            if not turn.done():  # otherwise the client has disconnected
                return turn
        return None

    def _push(self, at: int, flow: int) -> None:
        self._numbers += 1
        heappush(self._order, (at, self._numbers, flow))


class Pacer:
    """Starts `limit` requests per turn, more for a single flow. Delayed requests start in the next turns, round-robin
    over their levels."""

    def __init__(self, limit: int) -> None:
        self._limits = (limit * _ALONE, limit)  # (single flow, several flows)
        self._flow = 0  # flow of the last request
        self._several = 0  # turns until the current flow counts as the only flow
        self._begun = 0
        self._turning = False
        self._lines: deque[Line] = deque()  # lines with waiting requests

    def begin(self, flow: int) -> bool:
        """Return whether a request may start in this turn, and count it if so. Waiting requests take precedence."""
        if flow != self._flow:
            self._flow, self._several = flow, _REMEMBERED
        if self._begun >= self._limits[self._several > 0]:
            return False
        self._begun += 1
        if not self._turning:
            self._turn_again()
        return True

    async def wait(self, line: Line, flow: int, weight: int) -> None:
        """Wait for a turn in which the request may start."""
        turn = asyncio.get_running_loop().create_future()
        line.add(turn, flow, weight)
        if line not in self._lines:
            self._lines.append(line)
        await turn

    def _turn(self) -> None:
        self._begun = 0
        self._turning = False
        self._several = max(0, self._several - 1)
        limit = self._limits[self._several > 0]
        while self._lines and self._begun < limit:
            line = self._lines.popleft()
            turn = line.next()
            if turn is not None:
                self._begun += 1
                self._lines.append(line)
                turn.set_result(None)
        if self._begun:
            self._turn_again()

    def _turn_again(self) -> None:
        self._turning = True
        asyncio.get_running_loop().call_soon(self._turn)
