"""Threads for the work of many: flows take turns, so that a flow with much to do keeps no other waiting for long.

    a a a a a   and then   b      → a b a a a a

There is one thread for each size of work. While a thread has something to do, the threads for larger work pause at
their checkpoints, so that small work waits for work of its own size only. Of the flows that wait, the flow that has
used the least time goes first; a large job counts as if it had used its time already. A job that continues a request
goes before one that begins, so that few objects are in the making at a time.
The threads are daemons: a process that ends does not wait for work that nobody wants any more.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from pilothouse.machinery.checkpoints import ask_for_attention
from pilothouse.machinery.dataclass import dataclass

# How long a thread may keep the interpreter when the event loop wants it (docs/decisions/offload.md).
_SWITCH_INTERVAL = 0.0005
_LONGEST_PAUSE, _SHORTEST_RUN = 0.2, 0.02
"""Seconds: large work gets about a tenth of the time, however much small work there is."""
_HALF_LIFE = 5.0
"""Seconds after which the time that a flow has used counts half."""
_SECONDS_PER_BYTE = 1e-6
_AGING = 0.1
"""A job that has waited this many times longer goes before one that is so much smaller."""
_MOST_FLOWS = 1024
"""Flows whose use is remembered; beyond, the lighter half is forgotten."""


class JobEnded(BaseException):
    """Raised at a checkpoint of a job that nobody waits for any more. Not an Exception: nothing may take it for its
    own failure."""


@dataclass(slots=True, eq=False)
class Job:
    """One piece of work. `done` is called in the thread, with what it returned or raised."""

    flow: str
    size: int
    work: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]
    continues: bool = False
    """Whether the same request has had work done before."""
    submitted: float = 0.0
    ended: bool = False


class FairThreads:
    """A thread for each size; the last one has no upper limit."""

    def __init__(self, name: str, limits: tuple[int, ...]) -> None:
        self.changed = threading.Condition()
        self._limits = limits
        self.threads = tuple(FairThread(f"{name}-{rank}", self, rank) for rank in range(len(limits) + 1))
        self.by_ident: dict[int, FairThread] = {}
        self._used: dict[str, tuple[float, float]] = {}

    def of(self, size: int) -> FairThread:
        return self.threads[sum(size > limit for limit in self._limits)]

    def used(self, flow: str, now: float) -> float:
        """Return the seconds that the flow has used lately."""
        seconds, at = self._used.get(flow, (0.0, now))
        return float(seconds * 0.5 ** ((now - at) / _HALF_LIFE))

    def charge(self, flow: str, seconds: float) -> None:
        now = time.monotonic()
        self._used[flow] = (self.used(flow, now) + seconds, now)
        if len(self._used) > _MOST_FLOWS:
            heaviest = sorted(self._used, key=lambda flow: self.used(flow, now), reverse=True)[: _MOST_FLOWS // 2]
            self._used = {flow: self._used[flow] for flow in heaviest}

    def update_attention(self) -> None:
        """Ask jobs to look up only where there is something to see. The caller holds `changed`."""
        running = [thread.running for thread in self.threads if thread.running is not None]
        wanted = len(running) > 1 or any(job.ended for job in running)
        ask_for_attention(self._attend if wanted else None)

    def _attend(self) -> None:
        thread = self.by_ident.get(threading.get_ident())  # None on the event loop
        if thread is not None:
            thread.attend()


class FairThread:
    _waiting: OrderedDict[str, deque[Job]]  # by flow; no queue is empty
    _bytes: dict[str, int]  # of each flow that waits, the sizes of its jobs

    def __init__(self, name: str, threads: FairThreads, rank: int) -> None:
        self._name = name
        self._threads, self._rank = threads, rank
        self._changed = threads.changed
        self._waiting = OrderedDict()
        self._bytes = {}
        self._runs_until = 0.0
        self._is_started = False
        self.running: Job | None = None

    @property
    def waiting(self) -> int:
        with self._changed:
            return sum(map(len, self._waiting.values()))

    def waiting_bytes(self, flow: str) -> int:
        return self._bytes.get(flow, 0)

    def submit(self, job: Job) -> None:
        with self._changed:
            self._start()
            job.submitted = time.monotonic()
            queue = self._waiting.setdefault(job.flow, deque())
            queue.appendleft(job) if job.continues else queue.append(job)
            self._bytes[job.flow] = self._bytes.get(job.flow, 0) + job.size
            self._changed.notify_all()

    def withdraw(self, job: Job) -> bool:
        """Whether the job had not begun, and now never will. A job that has begun ends at its next checkpoint."""
        with self._changed:
            queue = self._waiting.get(job.flow)
            if queue is None or job not in queue:
                job.ended = True
                self._threads.update_attention()
                self._changed.notify_all()
                return False
            queue.remove(job)
            self._forget(job, queue)
            return True

    def attend(self) -> None:
        """Pause while smaller work is there, for some time. Raises JobEnded. Called by the thread itself."""
        job = self.running
        if job is None:
            return
        if self._is_outranked() and time.monotonic() > self._runs_until:
            with self._changed:
                self._changed.wait_for(lambda: job.ended or not self._is_outranked(), timeout=_LONGEST_PAUSE)
            self._runs_until = time.monotonic() + _SHORTEST_RUN
        if job.ended:
            raise JobEnded

    def _is_outranked(self) -> bool:
        return any(thread.running is not None or thread._waiting for thread in self._threads.threads[: self._rank])

    def _start(self) -> None:
        """Start the thread with the first work; most processes never have any."""
        if not self._is_started:
            self._is_started = True
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        self._threads.by_ident[threading.get_ident()] = self
        while True:
            job = self._next()
            start = time.thread_time()
            result, error = _performed(job)
            with self._changed:
                self.running = None
                self._threads.charge(job.flow, time.thread_time() - start)
                self._threads.update_attention()
                self._changed.notify_all()
            job.done(result, error)
            del job, result, error  # what they hold may be large, and the next job may be long in coming

    def _next(self) -> Job:
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            now = time.monotonic()
            flow = min(self._waiting, key=lambda flow: self._place(self._waiting[flow][0], now))
            queue = self._waiting[flow]
            job = queue.popleft()
            self._forget(job, queue)
            self.running = job
            self._threads.update_attention()
            return job

    def _place(self, job: Job, now: float) -> float:
        """Return the job's place in the line; the least is next."""
        expected = 0.0 if job.continues else job.size * _SECONDS_PER_BYTE
        return self._threads.used(job.flow, now) + expected + _AGING * job.submitted

    def _forget(self, job: Job, queue: deque[Job]) -> None:
        self._bytes[job.flow] -= job.size
        if not queue:
            del self._waiting[job.flow], self._bytes[job.flow]


def _performed(job: Job) -> tuple[Any, BaseException | None]:
    try:
        return job.work(), None
    except BaseException as error:
        return None, error
