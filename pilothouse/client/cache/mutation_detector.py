"""Detector of illegal modifications of cached objects. Copies every object: intended for tests.

Enabled for every informer by the environment variable KUBE_CACHE_MUTATION_DETECTOR=true, as upstream.
"""

from __future__ import annotations

import os

from pilothouse.client.clock import Clock
from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.objects import Json

PERIOD = 1.0
RETAIN = 120.0


class CacheMutated(AssertionError):
    """A cached object differs from its state at insertion."""


class CacheMutationDetector:
    _cached: list[tuple[Json, bytes]]  # objects of the current retention period, with their serialized form
    _retained: list[tuple[Json, bytes]]  # objects of the previous retention period

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._cached = []
        self._retained = []
        self._rotated = clock.now()

    def add_object(self, obj: Json) -> None:
        self._cached.append((obj, canonical_json(obj)))

    def compare_objects(self) -> None:
        """Raises CacheMutated with the original and the current state of the first modified object."""
        for obj, original in (*self._retained, *self._cached):
            if canonical_json(obj) != original:
                now = canonical_json(obj).decode()
                raise CacheMutated(f"cache {self._name} modified\n  was {original.decode()}\n  is  {now}")

    async def run(self) -> None:
        try:
            while True:
                if self._clock.now() - self._rotated > RETAIN:
                    self._retained, self._cached = self._cached, []
                    self._rotated = self._clock.now()
                self.compare_objects()
                await self._clock.sleep(PERIOD)
        finally:
            self.compare_objects()


def detector_from_environment(name: str, clock: Clock) -> CacheMutationDetector | None:
    enabled = os.environ.get("KUBE_CACHE_MUTATION_DETECTOR", "").lower() in ("1", "t", "true")
    return CacheMutationDetector(name, clock) if enabled else None
