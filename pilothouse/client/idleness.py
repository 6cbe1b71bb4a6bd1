"""Tracking of busy workers, so that tests can wait for quiescence.

Workers of a server belong to the context of that server. Controllers and informers of a program outside of any server,
such as an operator in the process of its test, are tracked in `PROGRAMS` while they run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol
from weakref import WeakSet


class Worker(Protocol):
    def is_busy(self, within: float) -> bool:
        """Report whether the worker has work now or `within` seconds."""


class Workers:
    """Live workers of one server, held by weak references. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: WeakSet[Worker] = WeakSet()

    def add(self, worker: Worker) -> None:
        with self._lock:
            self._members.add(worker)

    def remove(self, worker: Worker) -> None:
        with self._lock:
            self._members.discard(worker)

    def busy(self, within: float = 0.0) -> list[str]:
        """Return the names of workers with work now or `within` seconds."""
        busy = [worker for worker in self.members() if worker.is_busy(within)]
        return sorted({getattr(worker, "name", "") or type(worker).__name__ for worker in busy})

    def members(self) -> list[Worker]:
        with self._lock:
            return list(self._members)


_WORKERS: ContextVar[Workers | None] = ContextVar("the workers of this server", default=None)


def registered_workers() -> Workers:
    """Return the set that receives the workers created from now on in this task and its child tasks."""
    workers = Workers()
    _WORKERS.set(workers)
    return workers


class RunningWorker(Worker, Protocol):
    """Worker of a program outside of any server."""

    loop: asyncio.AbstractEventLoop | None
    """Event loop that runs the worker."""
    activity: int
    """Counter of finished work."""


PROGRAMS: Final = Workers()
"""Running workers outside of any server; every member is a RunningWorker."""


@contextmanager
def tracked_while_running(worker: RunningWorker) -> Iterator[None]:
    """Track a worker for the duration of the block: as one of its server's, or in `PROGRAMS`."""
    workers = _WORKERS.get()
    if workers is None:
        workers, worker.loop = PROGRAMS, asyncio.get_running_loop()
    workers.add(worker)
    try:
        yield
    finally:
        workers.remove(worker)
        worker.loop = None


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
