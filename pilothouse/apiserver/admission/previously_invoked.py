"""Reinvocation tracking: selects webhooks and policies for the second round after later changes of the object."""

from __future__ import annotations

from collections.abc import Hashable

from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.objects import Json


class PreviouslyInvoked:
    """Reinvocation state of a request.

    a (IfNeeded) runs, b changes the object             → a is reinvoked
    a (IfNeeded) changes the object, b does not         → a is not reinvoked for its own change
    """

    _called: set[Hashable]  # reinvocable, with no later change so far
    _due: set[Hashable]  # to be reinvoked

    def __init__(self) -> None:
        self._called, self._due = set(), set()
        self._output = b""

    def is_due(self, who: Hashable) -> bool:
        return who in self._due

    def called(self, who: Hashable) -> None:
        """Record a call of a reinvocable webhook or policy."""
        self._called.add(who)

    def changed(self) -> None:
        """Mark all recorded calls for reinvocation after a change."""
        self._due |= self._called
        self._called.clear()

    def notice_other_changes(self, obj: Json | None) -> None:
        """Detect, in the second round, changes by other plugins since the first."""
        if canonical_json(obj) != self._output:
            self.changed()

    def leave(self, obj: Json | None) -> None:
        self._output = canonical_json(obj)
