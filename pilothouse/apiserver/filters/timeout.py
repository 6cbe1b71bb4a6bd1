"""Timeout: a request that is not long-running is answered in time, with 504 if need be.

Requests set no timers of their own: they all have the same limit, so the oldest is always the first to be due, and
one look a second finds those that are. A timer each cost an eighth of a small GET.
"""

from __future__ import annotations

import asyncio
import time

from pilothouse.apiserver.filters.long_running import is_long_running
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.machinery.server_errors import Timeout

_LOOK_EVERY = 1.0


class Deadlines:
    """The tasks of requests under way, oldest first, and those that were cancelled for being late."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._due: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._looking = False

    def enter(self, task: asyncio.Task[object]) -> None:
        self._due[task] = time.monotonic() + self.limit
        if not self._looking:
            self._look_again()

    def leave(self, task: asyncio.Task[object]) -> None:
        self._due.pop(task, None)

    def forgive(self, task: asyncio.Task[object]) -> bool:
        """Whether the task was cancelled because it was late. It may then go on and say so."""
        if task not in self._late:
            return False
        self._late.discard(task)
        task.uncancel()
        return True

    def _cancel_late(self) -> None:
        self._looking, now = False, time.monotonic()
        while self._due:
            task, due = next(iter(self._due.items()))
            if due > now:
                self._look_again()
                return
            del self._due[task]
            self._late.add(task)
            task.cancel()

    def _look_again(self) -> None:
        self._looking = True
        asyncio.get_running_loop().call_later(min(_LOOK_EVERY, self.limit), self._cancel_late)


def with_timeout(limit: float) -> Filter:
    def wrap(handler: Handler) -> Handler:
        deadlines = Deadlines(limit)

        async def answer_in_time(request: Request) -> Response:
            if is_long_running(request.info):
                return await handler(request)
            task = asyncio.current_task()
            assert task is not None
            deadlines.enter(task)
            try:
                return await handler(request)
            except asyncio.CancelledError:
                if not deadlines.forgive(task):
                    raise
                message = f"request did not complete within requested timeout - {limit:g}s"
                raise Timeout(message, details={}) from None
            finally:
                deadlines.leave(task)

        return answer_in_time

    return wrap
