"""Pacing of syncs for owners with many pods.

A sync iterates over all pods of an owner, so syncing on each of a thousand pod events costs a million steps. After a
sync, the owner therefore rests for a time proportional to its number of pods. Owners with few pods are not delayed.
"""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue

_PER_POD = 0.0001
_NOT_WORTH_IT = 0.005
_LONGEST = 0.25


class Pacing:
    """Adds keys to a queue, delayed after a recent sync."""

    def __init__(self, queue: RateLimitingQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._not_before: dict[str, float] = {}

    def add(self, key: str) -> None:
        not_before = self._not_before.get(key)
        if not_before is not None and (wait := not_before - self._clock.now()) > 0:
            self._queue.add_after(key, wait)
        else:
            self._queue.add(key)

    def looked(self, key: str, pods: int) -> None:
        """Record a sync of the owner with this number of pods."""
        wait = min(pods * _PER_POD, _LONGEST)
        if wait > _NOT_WORTH_IT:
            self._not_before[key] = self._clock.now() + wait
        else:
            self._not_before.pop(key, None)

    def forget(self, key: str) -> None:
        self._not_before.pop(key, None)
