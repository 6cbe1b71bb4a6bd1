"""Tracking of busy workers, so that tests can wait for quiescence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol
from weakref import WeakSet


class Worker(Protocol):
    def is_busy(self, within: float) -> bool:
        """Report whether the worker has work now or `within` seconds."""


class Workers:
    """Live workers of one server, held by weak references."""

    def __init__(self) -> None:
        self._members: WeakSet[Worker] = WeakSet()

    def add(self, worker: Worker) -> None:
        self._members.add(worker)

    def busy(self, within: float = 0.0) -> list[str]:
        """Return the names of workers with work now or `within` seconds."""
        busy = [worker for worker in list(self._members) if worker.is_busy(within)]
        return sorted({getattr(worker, "name", "") or type(worker).__name__ for worker in busy})


_WORKERS: ContextVar[Workers | None] = ContextVar("the workers of this server", default=None)


def registered_workers() -> Workers:
    """Return the set that receives the workers created from now on in this task and its child tasks."""
    workers = Workers()
    _WORKERS.set(workers)
    return workers


class Errand:
    """Worker that is busy from creation until `under_way` is cleared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.under_way = True

    def is_busy(self, within: float) -> bool:
        return self.under_way


@contextmanager
def at_work(name: str) -> Iterator[None]:
    """Register as a busy worker while the block runs."""
    errand = Errand(name)
    register_worker(errand)
    try:
        yield
    finally:
        errand.under_way = False


def register_worker(worker: Worker) -> None:
    """Add the worker to the tracked workers of the current context, if any."""
    if (workers := _WORKERS.get()) is not None:
        workers.add(worker)
