"""Which webhooks or policies are called again, in the second round, because the object changed after they saw it."""

from __future__ import annotations

from collections.abc import Hashable

from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.objects import Json


class PreviouslyInvoked:
    """Of one request.

    a (IfNeeded) is called, b changes the object   → a is called again
    a (IfNeeded) changes the object, b does not    → a is not called again: it has seen what it did itself
    """

    _called: set[Hashable]  # may be called again, and have not seen the changes that come after them
    _due: set[Hashable]  # are to be called again

    def __init__(self) -> None:
        self._called, self._due = set(), set()
        self._output = b""

    def is_due(self, who: Hashable) -> bool:
        return who in self._due

    def called(self, who: Hashable) -> None:
        """Takes note of one that asks to be called again if need be."""
        self._called.add(who)

    def changed(self) -> None:
        """The object is not what those who were called have seen."""
        self._due |= self._called
        self._called.clear()

    def notice_other_changes(self, obj: Json | None) -> None:
        """In the second round: whether other plugins changed the object since these left it."""
        if canonical_json(obj) != self._output:
            self.changed()

    def leave(self, obj: Json | None) -> None:
        self._output = canonical_json(obj)
