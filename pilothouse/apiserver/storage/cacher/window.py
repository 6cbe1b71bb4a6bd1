"""The recent changes, in revision order, from which a watch can be resumed.

The window begins at the revision of a listing and grows with every change. It holds 100 changes, more when they are
younger than the last bookmark of every client, which can therefore resume from it, 100k at most.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

from pilothouse.apiserver.storage.cacher.bookmarks import PERIOD
from pilothouse.apiserver.storage.cacher.errors import TooOld
from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.dataclass import dataclass

Changes: TypeAlias = list[CacheChange]

_TO_RESUME = 15.0
"""Seconds that a client has, after the next bookmark was due, to resume from its last one."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    least: int = 100
    most: int = 100 * 1024
    seconds: float = PERIOD + _TO_RESUME


class ChangeWindow:
    """Changes after `floor`, without a gap, up to the newest."""

    floor: Revision  # a watch may resume from here or later; everything after it is in the window
    _changes: Changes  # in revision order; those before _start are gone and wait for being cut off in one go
    _start: int
    _capacity: int  # between the limits; doubled or halved by how old the changes are

    def __init__(self, limits: WindowLimits, metrics: CacheMetrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._capacity = limits.least
        self.restart(0)
        metrics.capacity.set(self._capacity)

    def restart(self, revision: Revision) -> None:
        """Begins anew at the revision of a listing."""
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
            # Changes may share one revision (keys under one lease expire together), so the revision of the change that
            # leaves is the floor: whoever resumes from it has seen all of that revision.
            self.floor = self._changes[self._start].revision
            self._start += 1
            if self._start * 2 > len(self._changes):
                del self._changes[: self._start]
                self._start = 0
        self._changes.append(change)

    def after(self, revision: Revision) -> Changes:
        """Every change after the revision, oldest first. Raises TooOld."""
        if revision < self.floor:
            raise TooOld(revision, self.floor)
        first = bisect_right(self._changes, revision, lo=self._start, key=lambda change: change.revision)
        return self._changes[first:]

    def _set_capacity(self, capacity: int) -> None:
        if capacity != self._capacity:
            self._metrics.resized(self._capacity, capacity)
            self._capacity = capacity
