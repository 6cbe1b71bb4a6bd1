"""Waiting for a condition on a server: evaluated again after every change, with a report of the changes on failure."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import parse_qsl, urlencode

from pilothouse.client.rest.http_transport import OBSERVED_READS
from pilothouse.machinery.status_error import StatusError
from pilothouse.testing.story import story_of

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import API, BlockingAPI

T = TypeVar("T")

_RETRIED: Final = (AssertionError, LookupError, StatusError)
"""Exceptions of a condition that does not hold yet."""
_MOST_WATCHES: Final = 16
_MOST_PARTS: Final = 12
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
        self._following: list[asyncio.Task[None]] = []
        self._reads: set[str] | None = None  # targets that the condition has read from a server in another process
        self._watched: set[str] = set()

    async def begin(self) -> None:
        """Follow the changes of a server in this process; note the reads of the condition for another server."""
        self._began, self._change = datetime.now(UTC), asyncio.Event()
        if self._api.snapshots is not None:
            self._before = await self._api.snapshot()
            self._following.append(asyncio.create_task(self._follow(self._before.revision)))
        else:
            self._reads = set()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Suppress the exceptions of a condition that does not hold yet."""
        self._attempts += 1
        observed = OBSERVED_READS.set(self._reads)
        try:
            yield
        except _RETRIED as error:
            self._problem = error
        finally:
            OBSERVED_READS.reset(observed)

    def holds(self, value: object) -> bool:
        self._problem = value
        return bool(value)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    async def changed(self) -> None:
        """Return after a change on the server, or after a tick, which grows without changes."""
        for target in {watch_target(read) for read in self._reads or ()} - self._watched:
            if target and len(self._watched) < _MOST_WATCHES:
                self._watched.add(target)
                self._following.append(asyncio.create_task(self._watch(target)))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(min(self._tick, self._end - time.monotonic()), 0.0)):
                await self._change.wait()
        self._tick = _FIRST_TICK if self._change.is_set() else min(self._tick * 2, _LAST_TICK)
        self._change.clear()

    async def end(self) -> None:
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

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

    async def _watch(self, target: str) -> None:
        """Report changes of objects. A watch without a version begins with their state, so that no change is lost."""
        with suppress(Exception):  # a watch that ends or is refused leaves the ticks
            response = await self._api.open("GET", target)
            try:
                async for _ in response.chunks():
                    self._change.set()
            finally:
                await response.close()


def watch_target(target: str) -> str:
    """Return the target of a watch for the objects that a GET reads; empty for other paths.

    >>> watch_target("/api/v1/namespaces/default/pods/web/status")
    '/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dweb&watch=true'
    """
    path, _, query = target.partition("?")
    [_, root, *parts] = [*path.split("/"), ""][:_MOST_PARTS]
    prefix = {"api": 1, "apis": 2}.get(root, len(parts))
    scope = prefix + 2 if parts[prefix : prefix + 1] == ["namespaces"] and len(parts) > prefix + 3 else prefix
    resource, name = parts[scope : scope + 1], "".join(parts[scope + 1 : scope + 2])
    if not resource or not resource[0]:
        return ""
    kept = [(key, value) for key, value in parse_qsl(query) if key in ("labelSelector", "fieldSelector")]
    selected = [("fieldSelector", f"metadata.name={name}")] if name else kept
    return f"/{root}/{'/'.join([*parts[:scope], *resource])}?{urlencode([*selected, ('watch', 'true')])}"
