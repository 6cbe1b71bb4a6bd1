"""A budget for what costs a peer nothing and us something.

Resets, pings, settings, priorities, unknown and empty frames, frames for closed streams, messages that are malformed or
refused, credit for more than was sent. It starts full and refills with time; a peer that empties it is a flood
(CVE-2023-44487 and its kin).
"""

from __future__ import annotations

from typing import Final

BURST: Final = 1000
PER_SECOND: Final = 100
WORTH_A_FRAME: Final = 256
"""Bytes of DATA: what is still sent of a body that was refused is no flood, if the frames are not tiny."""


_WORTH_AN_UPDATE: Final = 64
"""Bytes of DATA. Peers grant credit for what they were sent, some of them twice for every event of a watch."""


class FloodBudget:
    __slots__ = ("_left", "_since", "sent")

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._since = now
        self.sent = 0  # bytes that the peer may answer with frames that do not count

    def opened(self) -> None:
        """A stream may begin with credit of its own, and the rest of its request may come when it is over."""
        self.sent += 2 * _WORTH_AN_UPDATE

    def spend(self, now: float) -> bool:
        """Count one frame; return False when the budget is used up."""
        if now > self._since:
            self._left = min(BURST, self._left + (now - self._since) * PER_SECOND)
            self._since = now
        self._left -= 1
        return self._left >= 0

    def spend_on_answer(self, now: float) -> bool:
        """As `spend`, for frames that may answer what the peer was sent."""
        if self.sent < _WORTH_AN_UPDATE:
            return self.spend(now)
        self.sent -= _WORTH_AN_UPDATE
        return True
