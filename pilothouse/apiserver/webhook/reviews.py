"""The contract of webhooks that answer reviews: what is asked goes out as an object, and comes back with a status."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery.objects import Json


class ReviewFailed(Exception):
    """No answer, whatever was tried. `timed_out`: because it took too long."""

    def __init__(self, text: str, *, code: int = 0, timed_out: bool = False) -> None:
        super().__init__(text)
        self.code = code
        """The status of the last HTTP answer; 0 where there was none."""
        self.timed_out = timed_out


class ReviewWebhook(Protocol):
    async def review(self, review: Json) -> Json:
        """Raises ReviewFailed."""
