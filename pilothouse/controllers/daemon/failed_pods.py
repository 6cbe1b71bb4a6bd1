"""Exponential back-off for the replacement of failed pods, against create-reject loops on a node."""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.machinery.dataclass import dataclass

_FIRST, _LONGEST = 1.0, 15 * 60.0
_FORGOTTEN_AFTER = 2 * _LONGEST


@dataclass(slots=True)
class _Wait:
    seconds: float
    since: float


class FailedPodsBackoff:
    """Back-offs by key, doubling from a second to 15 minutes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[str, _Wait] = {}

    def seconds_to_wait(self, key: str) -> float | None:
        """Return the duration of the running back-off; None if no back-off is active."""
        wait, now = self._waits.get(key), self._clock.now()
        if wait is None or now - wait.since >= wait.seconds:
            return None
        return wait.seconds

    def begin(self, key: str) -> None:
        """Start a back-off twice as long as the last; 30 minutes after the last start, the duration is reset."""
        last, now = self._waits.get(key), self._clock.now()
        is_first = last is None or now - last.since > _FORGOTTEN_AFTER
        seconds = _FIRST if is_first or last is None else min(2 * last.seconds, _LONGEST)
        self._waits[key] = _Wait(seconds, now)

    def forget_old(self) -> None:
        """Drop expired back-offs."""
        now = self._clock.now()
        self._waits = {key: wait for key, wait in self._waits.items() if now - wait.since <= _FORGOTTEN_AFTER}
