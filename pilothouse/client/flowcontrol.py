"""TokenBucket: `burst` requests at once, then `qps` per second. A waiting caller has reserved a token."""

from __future__ import annotations

from pilothouse.client.clock import REAL_CLOCK, Clock


class TokenBucket:
    def __init__(self, qps: float, burst: int, clock: Clock = REAL_CLOCK) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs a positive rate and burst, got {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)  # negative while callers wait for reserved tokens
        self._at = clock.now()

    def reserve(self) -> float:
        """Take a token; return the seconds to wait before using it."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    def try_accept(self) -> bool:
        """Take a token if one is available; report whether it was."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def wait(self) -> None:
        delay = self.reserve()
        if delay > 0:
            await self._clock.sleep(delay)

    def _refill(self) -> None:
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now
