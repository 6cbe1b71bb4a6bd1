"""The window of recent changes, from which watches resume.

The window starts at the revision of a listing. It holds at least 100 changes, more while changes are younger than the
last bookmark of every client, at most 100k.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

from pilothouse.apiserver.storage.cacher.bookmarks import PERIOD
from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.errors import TooOld
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.dataclass import dataclass

Changes: TypeAlias = list[CacheChange]

_TO_RESUME = 15.0
"""Seconds after the next due bookmark within which a client can resume from its last one."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    least: int = 100
    most: int = 100 * 1024
    seconds: float = PERIOD + _TO_RESUME


class ChangeWindow:
    """All changes after `floor`, without gaps."""

    floor: Revision  # watches can resume from here or later
    _changes: Changes  # in revision order; entries before _start are void and removed in bulk
    _start: int
    _capacity: int  # doubled or halved by the age of the changes, within limits

    def __init__(self, limits: WindowLimits, metrics: CacheMetrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._capacity = limits.least
        self.restart(0)
        metrics.capacity.set(self._capacity)

    def restart(self, revision: Revision) -> None:
        """Restart at the revision of a listing."""
        self.floor = revision
        self._changes = []
        self._start = 0

    def __len__(self) -> int:
        return len(self._changes) - self._start

    def add(self, change: CacheChange) -> None:
        if len(self) >= self._capacity:
            now = change.recorded
            oldest = self._changes[self._start]
            recent = self._changes[-max(1, self._capacity // 4)]
            if now - oldest.recorded < self._limits.seconds:
                self._set_capacity(min(self._capacity * 2, self._limits.most))
            elif now - recent.recorded > self._limits.seconds:
                self._set_capacity(max(self._capacity // 2, self._limits.least))
        while len(self) >= self._capacity:
            # Several changes may share a revision (keys of one lease expire together). So the floor is the revision of
            # the leaving change: a client at that revision has seen all of it.
            self.floor = self._changes[self._start].revision
            self._start += 1
            if self._start * 2 > len(self._changes):
                del self._changes[: self._start]
                self._start = 0
        self._changes.append(change)

    def after(self, revision: Revision) -> Changes:
        """Return the changes after the revision, oldest first. Raises TooOld."""
        if revision < self.floor:
            raise TooOld(revision, self.floor)
        first = bisect_right(self._changes, revision, lo=self._start, key=lambda change: change.revision)
        return self._changes[first:]

    def _set_capacity(self, capacity: int) -> None:
        if capacity != self._capacity:
            self._metrics.resized(self._capacity, capacity)
            self._capacity = capacity
