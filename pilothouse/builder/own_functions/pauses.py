"""Work over many objects, on the event loop, in pieces between which everybody else has a turn."""

from __future__ import annotations

import asyncio
from time import perf_counter

_PIECE = 0.01  # seconds


class Pauses:
    """Of one piece of work. It stays on the loop because it reads objects that their owner may change there."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def due(self) -> None:
        """Lets others run, if the work has held the loop for long enough."""
        if perf_counter() - self._since > _PIECE:
            await asyncio.sleep(0)
            self._since = perf_counter()
