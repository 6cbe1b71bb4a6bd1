"""Finds out that someone changed an object of the cache. Costs a copy of every object: meant for tests.

Is on for every informer when the environment variable KUBE_CACHE_MUTATION_DETECTOR is true, as upstream.
"""

from __future__ import annotations

import os

import orjson

from pilothouse.client.clock import Clock
from pilothouse.machinery.objects import Json

PERIOD = 1.0
RETAIN = 120.0


class CacheMutated(AssertionError):
    """A cached object is not what it was when it was put into the cache."""


class CacheMutationDetector:
    _cached: list[tuple[Json, bytes]]  # objects of the running retention period, with what they looked like
    _retained: list[tuple[Json, bytes]]  # those of the period before

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._cached = []
        self._retained = []
        self._rotated = clock.now()

    def add_object(self, obj: Json) -> None:
        self._cached.append((obj, _image(obj)))

    def compare_objects(self) -> None:
        """Raises CacheMutated, with the object as it was and as it is."""
        for obj, image in (*self._retained, *self._cached):
            if _image(obj) != image:
                now = _image(obj).decode()
                raise CacheMutated(f"cache {self._name} modified\n  was {image.decode()}\n  is  {now}")

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


def _image(obj: Json) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def detector_from_environment(name: str, clock: Clock) -> CacheMutationDetector | None:
    enabled = os.environ.get("KUBE_CACHE_MUTATION_DETECTOR", "").lower() in ("1", "t", "true")
    return CacheMutationDetector(name, clock) if enabled else None
