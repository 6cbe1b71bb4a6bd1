"""A few threads for the work of many: flows take turns, so that who has much to do keeps nobody else waiting for long.

    a a a a a   and then   b      → a b a a a a

The threads are daemons: a process that ends does not wait for work that nobody wants any more.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from pilothouse.machinery.dataclass import dataclass

# How long a thread may keep the interpreter when the event loop wants it (docs/decisions/beside-the-loop.md).
_SWITCH_INTERVAL = 0.0005


@dataclass(slots=True, eq=False)
class Job:
    """One piece of work. `done` is called in the thread, with what it returned or raised."""

    flow: str
    size: int
    work: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]


class FairThreads:
    _waiting: OrderedDict[str, deque[Job]]  # by flow, the one whose turn it is first; no queue is empty
    _bytes: dict[str, int]  # of each flow that waits, the sizes of its jobs
    running: int  # jobs that a thread is at

    def __init__(self, count: int) -> None:
        self._count = count
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._waiting = OrderedDict()
        self._bytes = {}
        self.running = 0

    @property
    def waiting(self) -> int:
        with self._changed:
            return sum(map(len, self._waiting.values()))

    def waiting_bytes(self, flow: str) -> int:
        return self._bytes.get(flow, 0)

    def submit(self, job: Job) -> None:
        with self._changed:
            self._start_one()
            self._waiting.setdefault(job.flow, deque()).append(job)
            self._bytes[job.flow] = self._bytes.get(job.flow, 0) + job.size
            self._changed.notify()

    def withdraw(self, job: Job) -> bool:
        """Whether the job had not begun, and now never will."""
        with self._changed:
            queue = self._waiting.get(job.flow)
            if queue is None or job not in queue:
                return False
            queue.remove(job)
            self._left(job, queue)
            return True

    def _start_one(self) -> None:
        """Only as many as there is work for, for most processes never have any."""
        if len(self._threads) < self._count:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
            name = f"beside-the-loop-{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
            self._threads[-1].start()

    def _run(self) -> None:
        while True:
            job = self._next()
            _perform(job)
            with self._changed:
                self.running -= 1
            del job  # what it holds may be large, and the next one may be long in coming

    def _next(self) -> Job:
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            flow, queue = next(iter(self._waiting.items()))
            job = queue.popleft()
            self._waiting.move_to_end(flow)
            self._left(job, queue)
            self.running += 1
            return job

    def _left(self, job: Job, queue: deque[Job]) -> None:
        self._bytes[job.flow] -= job.size
        if not queue:
            del self._waiting[job.flow], self._bytes[job.flow]


def _perform(job: Job) -> None:
    try:
        result = job.work()
    except BaseException as error:
        job.done(None, error)
    else:
        job.done(result, None)
