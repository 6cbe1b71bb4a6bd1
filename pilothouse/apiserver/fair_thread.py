"""Worker threads with fair scheduling: flows take turns, so that a busy flow does not delay other flows for long.

a a a a a   and then   b      → a b a a a a

There is one thread per size class. While a thread has work, the threads of larger classes pause at their checkpoints,
so that small work waits only for work of its own class. The waiting flow with the least used time goes first; a large
job counts as used time in advance. Jobs of a request that has already had work go first, so that few requests are in
progress at a time. The threads are daemons: a process exits without waiting for abandoned work.
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

# Maximum time that a thread holds the interpreter when the event loop wants it (docs/decisions/offload.md).
_SWITCH_INTERVAL = 0.0005
_LONGEST_PAUSE, _SHORTEST_RUN = 0.2, 0.02
"""Seconds: large work gets about a tenth of the time, however much small work there is."""
_HALF_LIFE = 5.0
"""Half-life of used time in seconds."""
_SECONDS_PER_BYTE = 1e-6
_AGING = 0.1
"""Weight of waiting time against size."""
_MOST_FLOWS = 1024
"""Maximum number of tracked flows; above it the lighter half is dropped."""


class JobEnded(BaseException):
    """Raised at a checkpoint of an abandoned job. Not an Exception, so that no handler treats it as an error of the
    work."""


@dataclass(slots=True, eq=False)
class Job:
    """One piece of work. `done` is called in the thread with the result or the exception."""

    flow: str
    size: int
    work: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]
    continues: bool = False
    """Whether the request has had work before."""
    submitted: float = 0.0
    ended: bool = False


class FairThreads:
    """One thread per size class; the last one has no upper limit."""

    def __init__(self, name: str, limits: tuple[int, ...]) -> None:
        self.changed = threading.Condition()
        self._limits = limits
        self.threads = tuple(FairThread(f"{name}-{rank}", self, rank) for rank in range(len(limits) + 1))
        self.by_ident: dict[int, FairThread] = {}
        self._used: dict[str, tuple[float, float]] = {}

    def of(self, size: int) -> FairThread:
        return self.threads[sum(size > limit for limit in self._limits)]

    def used(self, flow: str, now: float) -> float:
        """Return the seconds that the flow has used recently."""
        seconds, at = self._used.get(flow, (0.0, now))
        return float(seconds * 0.5 ** ((now - at) / _HALF_LIFE))

    def charge(self, flow: str, seconds: float) -> None:
        now = time.monotonic()
        self._used[flow] = (self.used(flow, now) + seconds, now)
        if len(self._used) > _MOST_FLOWS:
            heaviest = sorted(self._used, key=lambda flow: self.used(flow, now), reverse=True)[: _MOST_FLOWS // 2]
            self._used = {flow: self._used[flow] for flow in heaviest}

    def update_attention(self) -> None:
        """Enable checkpoints only if there is a reason to pause or end a job. The caller holds `changed`."""
        running = [thread.running for thread in self.threads if thread.running is not None]
        wanted = len(running) > 1 or any(job.ended for job in running)
        ask_for_attention(self._attend if wanted else None)

    def _attend(self) -> None:
        thread = self.by_ident.get(threading.get_ident())  # None on the event loop
        if thread is not None:
            thread.attend()


class FairThread:
    _waiting: OrderedDict[str, deque[Job]]  # by flow; queues are never empty
    _bytes: dict[str, int]  # waiting bytes by flow

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
            # The thread starts with the first job: most processes never need it.
            if not self._is_started:
                self._is_started = True
                sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            job.submitted = time.monotonic()
            queue = self._waiting.setdefault(job.flow, deque())
            queue.appendleft(job) if job.continues else queue.append(job)
            self._bytes[job.flow] = self._bytes.get(job.flow, 0) + job.size
            self._changed.notify_all()

    def withdraw(self, job: Job) -> bool:
        """Return True if the job had not started and is now removed. A running job ends at its next checkpoint."""
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
        """Pause for a limited time while smaller work waits. Called by the thread itself. Raises JobEnded."""
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
            del job, result, error  # release memory: the next job may arrive late

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
        """Return the priority of the job; the lowest runs next."""
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
