"""Giving an owner with many pods some time between two looks at it.

A look at an owner goes over all of its pods. When a thousand pods become ready one after the other, a thousand looks
would go over a million. So each change of a pod makes its owner be looked at, but after a look it rests for some
times as long as that took, about: owners of few pods are not held up, and no owner takes all the time there is.
"""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue

_PER_POD = 0.0001
_NOT_WORTH_IT = 0.005
_LONGEST = 0.25


class Pacing:
    """Puts keys on a queue, later if their last look is not long ago."""

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
        """Say that the owner has been looked at, and how many pods it has."""
        wait = min(pods * _PER_POD, _LONGEST)
        if wait > _NOT_WORTH_IT:
            self._not_before[key] = self._clock.now() + wait
        else:
            self._not_before.pop(key, None)

    def forget(self, key: str) -> None:
        self._not_before.pop(key, None)
