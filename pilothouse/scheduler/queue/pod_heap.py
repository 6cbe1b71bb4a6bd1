"""A heap of pods with removal by uid."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from pilothouse.scheduler.queue.queued_pod import QueuedPod


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
        found = self._members.get(uid)
        return found[0] if found else None

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
        found = self._members.pop(uid, None)
        return found[0] if found else None

    def _skip_removed(self) -> None:
        while self._heap:
            _, number, queued = self._heap[0]
            member = self._members.get(queued.pod.uid)
            if member is not None and member[1] == number:
                return
            heapq.heappop(self._heap)
