"""A budget for what costs a client nothing and the server something.

Resets, pings, settings, priorities, unknown and empty frames, frames for closed streams, requests that are malformed or
refused, credit for more than was sent. It starts full and refills with time; a client that empties it is a flood
(CVE-2023-44487 and its kin).
"""

from __future__ import annotations

from typing import Final

BURST: Final = 1000
PER_SECOND: Final = 100


class FloodBudget:
    __slots__ = ("_left", "_since")

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._since = now

    def spend(self, now: float) -> bool:
        """False when the budget is used up."""
        if now > self._since:
            self._left = min(BURST, self._left + (now - self._since) * PER_SECOND)
            self._since = now
        self._left -= 1
        return self._left >= 0
