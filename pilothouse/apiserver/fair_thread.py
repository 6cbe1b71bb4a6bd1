"""One thread for the work of many: flows take turns, so that who has much to do keeps nobody else waiting for long.

    a a a a a   and then   b      → a b a a a a

What continues goes before what begins, so that few objects are in the making at a time, however many wait.
The thread is a daemon: a process that ends does not wait for work that nobody wants any more.
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
    continues: bool = False
    """Whether the same request has had work done before."""


class FairThread:
    _waiting: OrderedDict[str, deque[Job]]  # by flow, the one whose turn it is first; no queue is empty
    _bytes: dict[str, int]  # of each flow that waits, the sizes of its jobs

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting = OrderedDict()
        self._bytes = {}
        self.is_running = False

    @property
    def waiting(self) -> int:
        with self._changed:
            return sum(map(len, self._waiting.values()))

    def waiting_bytes(self, flow: str) -> int:
        return self._bytes.get(flow, 0)

    def submit(self, job: Job) -> None:
        with self._changed:
            self._start()
            queue = self._waiting.setdefault(job.flow, deque())
            queue.appendleft(job) if job.continues else queue.append(job)
            self._bytes[job.flow] = self._bytes.get(job.flow, 0) + job.size
            self._changed.notify()

    def withdraw(self, job: Job) -> bool:
        """Whether the job had not begun, and now never will."""
        with self._changed:
            queue = self._waiting.get(job.flow)
            if queue is None or job not in queue:
                return False
            queue.remove(job)
            self._forget(job, queue)
            return True

    def _start(self) -> None:
        """Start the thread with the first work; most processes never have any."""
        if self._thread is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            job = self._next()
            _perform(job)
            self.is_running = False
            del job  # what it holds may be large, and the next one may be long in coming

    def _next(self) -> Job:
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            flow, queue = next(iter(self._waiting.items()))
            job = queue.popleft()
            self._waiting.move_to_end(flow)
            self._forget(job, queue)
            self.is_running = True
            return job

    def _forget(self, job: Job, queue: deque[Job]) -> None:
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
