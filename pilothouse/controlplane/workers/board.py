"""What the processes of a server know of each other, in memory that all of them see."""

from __future__ import annotations

from pilothouse.machinery.shared_counters import shared_counters

_RESTARTS = 0


class Board:
    """Made before the processes are forked."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._words = shared_counters(1 + workers)

    @property
    def restarts(self) -> int:
        """How often a worker, or the store's process with all workers, was started again."""
        return self._words[_RESTARTS]

    def count_restart(self) -> None:
        """Called by the supervisor only."""
        self._words[_RESTARTS] += 1

    def set_ready(self, worker: int, ready: bool) -> None:
        self._words[worker] = ready

    def unready(self) -> list[int]:
        """Return the numbers of the workers that cannot serve yet."""
        return [worker for worker in range(1, self.workers + 1) if not self._words[worker]]
