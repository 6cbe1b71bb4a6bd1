"""One SQLite connection and the one thread that uses it.

Jobs run in the order in which they were sent; the outcome of each is handed back on the event loop.
SQLite's errors become Unavailable here and are seen nowhere above.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.machinery.dataclass import dataclass

T = TypeVar("T")

_IO_ERROR = 10  # SQLITE_IOERR, the low byte of each of its extended codes

Job: TypeAlias = Callable[[sqlite3.Connection], T]

# A busy event loop gives up the interpreter lock often but so briefly that a thread which has just come back from the
# disk can miss its turn for seconds. A thread is only sure to get it when it has waited this long (5 ms by default).
_SWITCH_INTERVAL = 0.0005


@dataclass(frozen=True, slots=True)
class JobOutcome(Generic[T]):
    """The outcome of a job: an error, or else its value."""

    value: T | None
    error: Exception | None


Done: TypeAlias = Callable[[JobOutcome[T]], None]


class ConnectionThread:
    """Must be created on the event loop that is to receive the outcomes."""

    def __init__(
        self, connection: sqlite3.Connection, *, name: str, precondition: Callable[[], None] = lambda: None
    ) -> None:
        """`precondition` is called before each job, on the thread; an error that it raises is the job's."""
        self._connection = connection
        self._precondition = precondition
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.is_open = True
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
        # A daemon, so that a process that never closed its store can end: what was acknowledged is on disk.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def send(self, job: Job[T], done: Done[T]) -> None:
        """Runs the job in its turn; `done` is called on the event loop."""
        self.ensure_open()
        self._work.put(partial(self._perform, job, done))

    def ensure_open(self) -> None:
        """Raises Unavailable."""
        if not self.is_open:
            raise Unavailable("the store is closed")

    def call(self, job: Job[T]) -> asyncio.Future[T]:
        """Runs the job in its turn. When the future is cancelled the job still runs."""
        future: asyncio.Future[T] = self._loop.create_future()
        self.send(job, partial(_settle, future))
        return future

    async def close(self) -> None:
        """Finishes the jobs that were sent, then closes the connection."""
        if self.is_open:
            closed = self.call(self._end)
            self.is_open = False
            self._work.put(None)
            await closed

    def _run(self) -> None:
        for work in iter(self._work.get, None):
            work()

    def _perform(self, job: Job[T], done: Done[T]) -> None:
        outcome = self._attempt(job)
        with suppress(RuntimeError):  # the event loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(done, outcome)

    def _attempt(self, job: Job[T]) -> JobOutcome[T]:
        try:
            if job != self._end:
                self._precondition()
            return JobOutcome(job(self._connection), None)
        except sqlite3.Error as error:
            return JobOutcome(None, _unavailable(error))
        except Exception as error:
            return JobOutcome(None, error)

    @staticmethod
    def _end(connection: sqlite3.Connection) -> None:
        connection.close()


def _unavailable(error: sqlite3.Error) -> Unavailable:
    """After an input/output error a transaction may have reached the disk without SQLite knowing, and would be there
    after a crash. Every other error comes before the last page of a transaction is written."""
    code = getattr(error, "sqlite_errorcode", _IO_ERROR)
    return Unavailable(f"the store's file cannot be used: {error}", uncertain=code & 0xFF == _IO_ERROR)


def _settle(future: asyncio.Future[T], outcome: JobOutcome[T]) -> None:
    if future.done():
        return
    if outcome.error is not None:
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.value)  # type: ignore[arg-type]
