"""Flood protection: a budget for frames that cost the peer nothing.

Resets, pings, settings, priorities, unknown and empty frames, frames for closed streams, malformed or refused messages,
excess credit. The budget starts full and refills over time; an empty budget indicates a flood (CVE-2023-44487 and
related).
"""

from __future__ import annotations

from typing import Final

BURST: Final = 1000
PER_SECOND: Final = 100
WORTH_A_FRAME: Final = 256
"""Bytes of DATA per free frame: the remaining body of a refused request is no flood, unless its frames are tiny."""


_WORTH_AN_UPDATE: Final = 64
"""Bytes of DATA per free window update. Some peers grant credit twice per watch event."""


class FloodBudget:
    __slots__ = ("_left", "_since", "sent")

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._since = now
        self.sent = 0  # sent bytes that entitle the peer to free frames

    def opened(self) -> None:
        """Grant free frames for a new stream: its own credit, and frames that arrive after its end."""
        self.sent += 2 * _WORTH_AN_UPDATE

    def spend(self, now: float) -> bool:
        """Charge a frame; return False for an exhausted budget."""
        if now > self._since:
            self._left = min(BURST, self._left + (now - self._since) * PER_SECOND)
            self._since = now
        self._left -= 1
        return self._left >= 0

    def spend_on_answer(self, now: float) -> bool:
        """Like `spend`, for frames that may respond to sent data."""
        if self.sent < _WORTH_AN_UPDATE:
            return self.spend(now)
        self.sent -= _WORTH_AN_UPDATE
        return True
