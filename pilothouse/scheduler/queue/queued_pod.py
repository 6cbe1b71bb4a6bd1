"""A pending pod with its attempts and rejections, the heap of pending pods, and the back-off of rejected pods."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import count
from math import ceil
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.pod_info import PodInfo

_WINDOW = 1.0


@dataclass(slots=True, eq=False)
class QueuedPod:
    pod: PodInfo
    since: float
    """Time of the last enqueue. Pods of equal priority are ordered by this time."""
    attempts: int = 0
    unschedulable_count: int = 0
    """Number of rejections; determines the back-off."""
    errors_in_a_row: int = 0
    rejected_by: frozenset[str] = field(default_factory=frozenset)
    """Plugins that rejected the pod; an event of one of them triggers a retry."""
    gated_by: str = ""
    """PreEnqueue plugin that blocks the pod."""

    @property
    def order(self) -> tuple[int, float]:
        """Sort key: higher priority first, then earlier enqueue."""
        return -self.pod.priority, self.since


class PodHeap:
    """Removed pods stay in the heap until they reach the top (lazy deletion)."""

    _heap: list[tuple[Any, int, QueuedPod]]
    _members: dict[str, tuple[QueuedPod, int]]  # uid → (pod, sequence number in the heap)

    def __init__(self, order: Callable[[QueuedPod], Any]) -> None:
        self._order = order
        self._heap, self._members = [], {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._members.values())

    def get(self, uid: str) -> QueuedPod | None:
        member = self._members.get(uid)
        return member[0] if member else None

    def push(self, queued: QueuedPod) -> None:
        number = next(self._numbers)
        self._members[queued.pod.uid] = queued, number
        heapq.heappush(self._heap, (self._order(queued), number, queued))

    def first(self) -> QueuedPod | None:
        self._skip_removed()
        return self._heap[0][2] if self._heap else None

    def pop(self) -> QueuedPod | None:
        self._skip_removed()
        if not self._heap:
            return None
        queued = heapq.heappop(self._heap)[2]
        del self._members[queued.pod.uid]
        return queued

    def remove(self, uid: str) -> QueuedPod | None:
        member = self._members.pop(uid, None)
        return member[0] if member else None

    def _skip_removed(self) -> None:
        while self._heap:
            _, number, queued = self._heap[0]
            member = self._members.get(queued.pod.uid)
            if member is not None and member[1] == number:
                return
            heapq.heappop(self._heap)


@dataclass(frozen=True, slots=True)
class BackOff:
    """Back-off of rejected pods: one second, doubled with each rejection, at most ten seconds.

    Times are rounded up to whole seconds, so pods with nearly equal times are ordered by priority. While no other pod
    waits, a tenth of the time suffices; upstream then waits not at all, but has a processor to itself.
    """

    initial: float = 1.0
    greatest: float = 10.0

    def ends(self, queued: QueuedPod) -> float:
        """Return the end of the pod's back-off."""
        duration = self._duration(queued)
        return ceil((queued.since + duration) / _WINDOW) * _WINDOW if duration else queued.since

    def may_be_cut_short(self, queued: QueuedPod) -> float:
        """Return the earliest retry time while no other pod waits."""
        return queued.since + self._duration(queued) / 10

    def _duration(self, queued: QueuedPod) -> float:
        times = queued.errors_in_a_row or queued.unschedulable_count
        return min(self.initial * float(1 << min(times - 1, 30)), self.greatest) if times else 0.0
