"""Waiting for a condition on a server: evaluated again after every change, with a report of the changes on failure."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pilothouse.machinery.status_error import StatusError
from pilothouse.testing.story import story_of

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import API, BlockingAPI

T = TypeVar("T")

_RETRIED: Final = (AssertionError, LookupError, StatusError)
"""Exceptions of a condition that does not hold yet."""
_FIRST_TICK, _LAST_TICK = 0.02, 1.0
"""Seconds between evaluations without a change on the server: the condition may read other state."""


async def eventually(
    api: API,
    condition: Callable[[], Awaitable[T] | T],
    within: float,
    run: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]],
) -> T:
    """Return the first true value of the condition. `run` awaits coroutines in the loop of `api`."""
    wait = ConditionWait(api, condition, within)
    await run(wait.begin())
    try:
        while True:
            with wait.attempt():
                value = condition()
                if inspect.isawaitable(value):
                    value = await value
                if wait.holds(value):
                    return cast("T", value)
            if wait.is_over:
                raise await run(wait.failure())
            await run(wait.changed())
    finally:
        await run(wait.end())


def eventually_blocking(api: BlockingAPI, condition: Callable[[], T], within: float) -> T:
    """Blocking form of `eventually`. The condition runs in the calling thread."""
    wait, run = ConditionWait(api.behind, condition, within), api.loop.run
    run(wait.begin())
    try:
        while True:
            with wait.attempt():
                value = condition()
                if wait.holds(value):
                    return value
            if wait.is_over:
                raise run(wait.failure())
            run(wait.changed())
    finally:
        run(wait.end())


class ConditionWait:
    """One wait for a condition. Coroutines run in the loop of the API."""

    def __init__(self, api: API, condition: Callable[[], object], within: float) -> None:
        self._api = api
        self._condition = condition
        self._within = within
        self._end = time.monotonic() + within
        self._tick = _FIRST_TICK
        self._attempts = 0
        self._problem: Exception | object = None
        self._before: StoredSnapshot | None = None
        self._following: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Follow the changes of the server, as far as it runs in this process."""
        self._began, self._change = datetime.now(UTC), asyncio.Event()
        if self._api.snapshots is not None:
            self._before = await self._api.snapshot()
            self._following = asyncio.create_task(self._follow(self._before.revision))

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Suppress the exceptions of a condition that does not hold yet."""
        self._attempts += 1
        try:
            yield
        except _RETRIED as error:
            self._problem = error

    def holds(self, value: object) -> bool:
        self._problem = value
        return bool(value)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    async def changed(self) -> None:
        """Return after a change on the server, or after a tick, which grows without changes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(min(self._tick, self._end - time.monotonic()), 0.0)):
                await self._change.wait()
        self._tick = _FIRST_TICK if self._change.is_set() else min(self._tick * 2, _LAST_TICK)
        self._change.clear()

    async def end(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def failure(self) -> AssertionError:
        """Return the error, with the changes during the wait as a note."""
        name = getattr(self._condition, "__name__", "") or repr(self._condition)
        what = "the condition" if name == "<lambda>" else name
        head = f"{what} did not hold within {self._within:g} s ({self._attempts} evaluations): {self._reason()}"
        error = AssertionError(head)
        error.__cause__ = self._problem if isinstance(self._problem, Exception) else None
        if self._before is not None:
            for title, text in await story_of(self._api, self._before, self._began):
                error.add_note(f"--- {title} (during the wait) ---\n{text}")
        return error

    def _reason(self) -> str:
        if isinstance(self._problem, Exception):
            return f"{type(self._problem).__name__}: {self._problem}"
        hint = "; return a true value after the assertions" if self._problem is None else ""
        return f"the last value is {self._problem!r}{hint}"

    async def _follow(self, revision: int) -> None:
        snapshots = self._api.snapshots
        assert snapshots is not None
        with suppress(Exception):  # a watch that ends, as after a restore, leaves the ticks
            async for batch in snapshots.store.watch(f"{snapshots.root}/", after=revision):
                if batch.events:
                    self._change.set()
