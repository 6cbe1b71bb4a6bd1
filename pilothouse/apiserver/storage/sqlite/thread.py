"""A SQLite connection with its own thread.

Jobs run in order; outcomes are delivered on the event loop. SQLite's errors become Unavailable here.
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

_IO_ERROR = 10  # SQLITE_IOERR, the low byte of its extended codes

Job: TypeAlias = Callable[[sqlite3.Connection], T]

# A busy event loop releases the interpreter lock so briefly that a thread returning from the disk can miss it for
# seconds. A thread is sure to get the lock only after this interval (5 ms by default).
_SWITCH_INTERVAL = 0.0005


@dataclass(frozen=True, slots=True)
class JobOutcome(Generic[T]):
    """The outcome of a job: a value or an error."""

    value: T | None
    error: Exception | None


Done: TypeAlias = Callable[[JobOutcome[T]], None]


class ConnectionThread:
    """Must be created on the event loop that receives the outcomes."""

    def __init__(
        self, connection: sqlite3.Connection, *, name: str, precondition: Callable[[], None] = lambda: None
    ) -> None:
        """`precondition` runs before each job on the thread; its error becomes the job's."""
        self._connection = connection
        self._precondition = precondition
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.is_open = True
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
        # A daemon, so that a process with an unclosed store can end: acknowledged writes are on disk.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def send(self, job: Job[T], done: Done[T]) -> None:
        """Queue the job; `done` is called on the event loop."""
        self.ensure_open()
        self._work.put(partial(self._perform, job, done))

    def ensure_open(self) -> None:
        """Raise Unavailable if closed."""
        if not self.is_open:
            raise Unavailable("the store is closed")

    def call(self, job: Job[T]) -> asyncio.Future[T]:
        """Queue the job. Cancelling the future does not cancel the job."""
        future: asyncio.Future[T] = self._loop.create_future()
        self.send(job, partial(_settle, future))
        return future

    async def close(self) -> None:
        """Finish queued jobs, then close the connection."""
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
        with suppress(RuntimeError):  # the event loop is closed, and no task waits
            self._loop.call_soon_threadsafe(done, outcome)

    def _attempt(self, job: Job[T]) -> JobOutcome[T]:
        try:
            if job != self._end:
                self._precondition()
            return JobOutcome(job(self._connection), None)
        except sqlite3.Error as error:
            # After an I/O error the transaction may have reached the disk, unknown to SQLite; all other errors precede
            # its last page.
            uncertain = getattr(error, "sqlite_errorcode", _IO_ERROR) & 0xFF == _IO_ERROR
            return JobOutcome(None, Unavailable(f"the store's file cannot be used: {error}", uncertain=uncertain))
        except Exception as error:
            return JobOutcome(None, error)

    @staticmethod
    def _end(connection: sqlite3.Connection) -> None:
        connection.close()


def _settle(future: asyncio.Future[T], outcome: JobOutcome[T]) -> None:
    if future.done():
        return
    if outcome.error is not None:
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.value)  # type: ignore[arg-type]
