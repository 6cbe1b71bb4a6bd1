"""Those in a server that have work lying before them: for tests that wait until nobody has any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol
from weakref import WeakSet


class Worker(Protocol):
    def is_busy(self, within: float) -> bool:
        """Whether there is work to be done, or will be `within` so many seconds."""


class Workers:
    """The workers of one server, for as long as they live."""

    def __init__(self) -> None:
        self._members: WeakSet[Worker] = WeakSet()

    def add(self, worker: Worker) -> None:
        self._members.add(worker)

    def busy(self, within: float = 0.0) -> list[str]:
        """Return the names of those that have work, or will have it `within` so many seconds."""
        busy = [worker for worker in list(self._members) if worker.is_busy(within)]
        return sorted({getattr(worker, "name", "") or type(worker).__name__ for worker in busy})


_WORKERS: ContextVar[Workers | None] = ContextVar("the workers of this server", default=None)


def registered_workers() -> Workers:
    """Return the workers that are made from now on in this task, and in those that it begins."""
    workers = Workers()
    _WORKERS.set(workers)
    return workers


class Errand:
    """Is a Worker, from its beginning to its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.under_way = True

    def is_busy(self, within: float) -> bool:
        return self.under_way


@contextmanager
def at_work(name: str) -> Iterator[None]:
    """Have it be known that something is done, for as long as the block lasts."""
    errand = Errand(name)
    register_worker(errand)
    try:
        yield
    finally:
        errand.under_way = False


def register_worker(worker: Worker) -> None:
    """Have it be known that the worker is there, where somebody wants to know."""
    if (workers := _WORKERS.get()) is not None:
        workers.add(worker)
