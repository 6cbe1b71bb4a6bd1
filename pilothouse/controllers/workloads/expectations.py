"""Expectations: creations and deletions that the informer cache has not observed yet.

Without expectations, a controller that syncs before its cache has caught up would create the same pods twice. The
controller records expected events, informer handlers record observed events, and in between nothing is created or
deleted.

    expectations.expect_creations("default/web", 2)
    expectations.are_met("default/web")            # False
    expectations.creation_observed("default/web")  # by the informer's handler
    expectations.creation_observed("default/web")
    expectations.are_met("default/web")            # True

Expectations expire after five minutes: a lost event delays a controller, but does not block it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pilothouse.client.clock import Clock
from pilothouse.machinery.dataclass import dataclass

TIMEOUT = 300.0


@dataclass(slots=True)
class _Expected:
    since: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)
    """Pending deletions by uid: a deletion is observed twice, at deletionTimestamp and at removal."""

    @property
    def is_met(self) -> bool:
        return self.creations <= 0 and not self.deletions


class ControllerExpectations:
    """Expectations of a controller, by object key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def are_met(self, key: str) -> bool:
        """Return whether all expectations are observed or expired, or none exist."""
        expected = self._expected.get(key)
        return expected is None or expected.is_met or self._clock.now() - expected.since > TIMEOUT

    def expect_creations(self, key: str, count: int) -> None:
        """Replace the expectations of the key."""
        self._expected[key] = _Expected(self._clock.now(), creations=count)

    def expect_deletions(self, key: str, uids: Iterable[str]) -> None:
        """Replace the expectations of the key."""
        self._expected[key] = _Expected(self._clock.now(), deletions=set(uids))

    def expect(self, key: str, creations: int, deletions: Iterable[str]) -> None:
        """Replace the expectations of the key."""
        self._expected[key] = _Expected(self._clock.now(), creations, set(deletions))

    def creation_observed(self, key: str, count: int = 1) -> None:
        """Record `count` creations as observed, or as failed."""
        if (expected := self._expected.get(key)) is not None:
            expected.creations -= count

    def deletion_observed(self, key: str, uid: str) -> None:
        """Record a deletion as observed, or as failed. Idempotent."""
        if (expected := self._expected.get(key)) is not None:
            expected.deletions.discard(uid)

    def forget(self, key: str) -> None:
        self._expected.pop(key, None)
