"""How long the changes of pods wait before their services are synced.

A service with many pods takes long to sync, and many pods change at once: what comes while it waits is done together,
so that no more than a tenth of the time goes into one service.
"""

from __future__ import annotations

_SHARE = 10
_LEAST = 0.01
"""What one request changes in many pods comes within this time."""


class Pace:
    _took: dict[str, float]  # seconds that the last sync of each service took

    def __init__(self, batch_period: float) -> None:
        self._batch_period = batch_period
        self._took = {}

    def delay(self, service: str) -> float:
        return max(self._batch_period, _LEAST, _SHARE * self._took.get(service, 0.0))

    def took(self, service: str, seconds: float) -> None:
        self._took[service] = seconds

    def forget(self, service: str) -> None:
        self._took.pop(service, None)
