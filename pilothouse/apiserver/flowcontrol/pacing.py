"""Pacing: how many requests begin in one turn of the event loop.

All requests share one processor. One that begins runs until it waits for something, and nobody who came meanwhile can
get in between; were all that may run to begin at once, a newcomer would wait for all of them, however fair its queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pacer:
    """Lets `limit` requests begin in a turn. Whoever is held back is called in the next, oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = 0
        self._turning = False
        self._waiting: dict[Callable[[], bool], None] = {}  # in order; each says whether it has more to begin

    def begin(self) -> bool:
        """Whether a request may begin in this turn; if so, it is counted."""
        if self._begun >= self._limit:
            return False
        self._begun += 1
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)
        return True

    def call_later(self, dispatch: Callable[[], bool]) -> None:
        """`dispatch` begins one request, and says whether more wait."""
        self._waiting[dispatch] = None

    def _turn(self) -> None:
        self._begun = 0
        self._turning = False
        while self._waiting and self._begun < self._limit:
            dispatch = next(iter(self._waiting))
            del self._waiting[dispatch]
            if dispatch():
                self._waiting[dispatch] = None
        if self._waiting and not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)
