"""Pacing: how many requests begin in one turn of the event loop.

All requests share one processor. One that begins runs until it waits for something, and nobody who came meanwhile can
get in between; were all that have seats to begin at once, a newcomer would wait for all of them.

    limit 4, seats for all: 30 requests of flow A, then one of flow B     A A A A | B A A A | A A A A | …

Each turn costs something by itself, so that as long as a flow is alone, more of its requests begin at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush

_ALONE = 4
"""How many times as many begin at once while nobody else asks."""
_REMEMBERED = 1000
"""Turns for which a flow that asked once is not taken for gone."""


class Line:
    """The requests of one priority level that wait to begin.

    Flows take turns, each the longer apart the more its requests weigh; one that comes anew is as far as the one that
    had its turn last.
    """

    __slots__ = ("_at", "_flows", "_numbers", "_order")

    def __init__(self) -> None:
        self._at = 0  # of the request that began last
        self._numbers = 0
        self._flows: dict[int, deque[tuple[asyncio.Future[None], int]]] = {}  # turns and weights, oldest first
        self._order: list[tuple[int, int, int]] = []  # a heap: when each flow is next, who came first, which it is

    def add(self, turn: asyncio.Future[None], flow: int, weight: int) -> None:
        waiting = self._flows.get(flow)
        if waiting is None:
            waiting = self._flows[flow] = deque()
            self._push(self._at, flow)
        waiting.append((turn, weight))

    def next(self) -> asyncio.Future[None] | None:
        """The one whose turn it is, out of the line; None where nobody waits."""
        while self._order:
            self._at, _, flow = heappop(self._order)
            waiting = self._flows[flow]
            turn, weight = waiting.popleft()
            if waiting:
                self._push(self._at + weight, flow)
            else:
                del self._flows[flow]
            if not turn.done():  # else its client has gone
                return turn
        return None

    def _push(self, at: int, flow: int) -> None:
        self._numbers += 1
        heappush(self._order, (at, self._numbers, flow))


class Pacer:
    """Lets `limit` requests begin in a turn, more while all are of one flow. Those held back begin in the next turns;
    their levels take turns."""

    def __init__(self, limit: int) -> None:
        self._limits = (limit * _ALONE, limit)  # for a flow alone, and for several
        self._flow = 0  # whose request came last
        self._several = 0  # turns until the flow that asks is thought to be alone
        self._begun = 0
        self._turning = False
        self._lines: deque[Line] = deque()  # those in which somebody waits

    def begin(self, flow: int) -> bool:
        """Whether a request may begin in this turn; if so, it is counted. Others that wait to begin come first."""
        if flow != self._flow:
            self._flow, self._several = flow, _REMEMBERED
        if self._begun >= self._limits[self._several > 0]:
            return False
        self._begun += 1
        if not self._turning:
            self._turn_again()
        return True

    async def wait(self, line: Line, flow: int, weight: int) -> None:
        """For a request that may not begin in this turn; returns in the turn in which it may."""
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
