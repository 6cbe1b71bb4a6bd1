"""The store's current revision, and the oldest that it keeps, in memory that all processes of a server see.

The store writes them when a change is durable, and before whoever made the change is told so. Who reads them later
reads that revision or a newer one: a linearizable read without asking.
"""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.shared_counters import shared_counters

_CURRENT, _COMPACTED = 0, 1


class SharedRevisions:
    """Shared with processes that are forked after it was made."""

    def __init__(self) -> None:
        self._words = shared_counters(2)

    @property
    def current(self) -> Revision:
        return self._words[_CURRENT]

    @property
    def compacted(self) -> Revision:
        return self._words[_COMPACTED]

    def announce(self, current: Revision, compacted: Revision) -> None:
        self._words[_COMPACTED] = compacted
        self._words[_CURRENT] = current
