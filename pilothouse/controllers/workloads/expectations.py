"""Expectations: what a controller has done and its informer has not shown it yet.

A controller that creates two pods and looks again before its cache knows of them would create two more. So it says
what it expects, the informer's handlers say what has been seen, and nothing is created or deleted in between.

    expectations.expect_creations("default/web", 2)
    expectations.are_met("default/web")            # False
    expectations.creation_observed("default/web")  # by the informer's handler
    expectations.creation_observed("default/web")
    expectations.are_met("default/web")            # True

What never comes to be seen is forgotten after five minutes: a lost event delays a controller, and does not stop it.
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
    """By uid: the end of an object shows twice, when it is marked and when it is gone."""

    @property
    def is_met(self) -> bool:
        return self.creations <= 0 and not self.deletions


class ControllerExpectations:
    """The expectations of one kind of controller, by the key of its object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def are_met(self, key: str) -> bool:
        """Whether everything has been seen, or too long been waited for; also if nothing is expected."""
        expected = self._expected.get(key)
        return expected is None or expected.is_met or self._clock.now() - expected.since > TIMEOUT

    def expect_creations(self, key: str, count: int) -> None:
        """In place of what was expected before."""
        self._expected[key] = _Expected(self._clock.now(), creations=count)

    def expect_deletions(self, key: str, uids: Iterable[str]) -> None:
        """In place of what was expected before."""
        self._expected[key] = _Expected(self._clock.now(), deletions=set(uids))

    def expect(self, key: str, creations: int, deletions: Iterable[str]) -> None:
        """In place of what was expected before."""
        self._expected[key] = _Expected(self._clock.now(), creations, set(deletions))

    def creation_observed(self, key: str, count: int = 1) -> None:
        """One was seen; or `count` were never made, and none of them will be."""
        if (expected := self._expected.get(key)) is not None:
            expected.creations -= count

    def deletion_observed(self, key: str, uid: str) -> None:
        """It was seen going or gone; or it could not be deleted. Saying so again does nothing."""
        if (expected := self._expected.get(key)) is not None:
            expected.deletions.discard(uid)

    def forget(self, key: str) -> None:
        self._expected.pop(key, None)
