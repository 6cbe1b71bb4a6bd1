"""Health of durable writes, judged by the last commit, and by probes after a failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.sqlite.clock import WallClock

# Seconds between probes, and the maximum duration of a healthy commit.
_PROBE_EVERY = 1.0
_COMMIT_LIMIT = 10.0

Probe: TypeAlias = Callable[[], Awaitable[None]]


class StoreHealth:
    """Unhealthy from a failed commit until the next success, and while a commit hangs."""

    def __init__(self, clock: WallClock, probe: Probe) -> None:
        self._clock = clock
        self._probe = probe
        self._reason: str | None = None
        self._probed = clock.monotonic()
        self._started: float | None = None  # start of the running commit

    def commit_started(self) -> None:
        self._started = self._clock.monotonic()

    def commit_succeeded(self) -> None:
        self._started = None
        self._reason = None

    def commit_failed(self, error: Exception) -> None:
        self._started = None
        self._reason = str(error)
        self._probed = self._clock.monotonic()

    async def check(self) -> None:
        """Raise Unavailable while writes fail."""
        now = self._clock.monotonic()
        if self._started is not None and now - self._started > _COMMIT_LIMIT:
            raise Unavailable(f"a commit has been running for {now - self._started:.0f} s")
        if self._reason is None:
            return
        if now - self._probed < _PROBE_EVERY:
            raise Unavailable(self._reason)
        self._probed = now
        try:
            await self._probe()
        except Unavailable as error:
            self._reason = str(error)
            raise
        self._reason = None
