"""The store's current and oldest revision, in memory shared by all processes of a server.

The store process writes them after a change is durable and before the writer is told. A later read returns that
revision or a newer one: a linearizable read without a request.
"""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.shared_counters import shared_counters

_CURRENT, _COMPACTED = 0, 1


class SharedRevisions:
    """Shared with processes forked after its creation."""

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
