"""Hooks: post-start hooks run concurrently once the server listens; pre-shutdown hooks run in sequence when a shutdown
begins, while the server still responds.

A post-start hook may run on several servers at once, may find the partial work of an earlier run, and may still run
while requests are served. Its health check `poststarthook/<name>` fails until it finishes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.apiserver.logs import v
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt

log = logging.getLogger(__name__)


class StoppedBeforeShutdown:
    """Base of a background task with a pre-shutdown hook: the task ends while requests are still served, so that its
    watches end and its lease is released."""

    _running: asyncio.Future[None] | None = None

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})


class HookContext:
    """Spawns background tasks of post-start hooks. The tasks outlive the hook and are cancelled in reverse order
    when the server stops.

    >>> import asyncio
    >>> from pilothouse.apiserver import HookContext
    >>> async def refresh():
    ...     await asyncio.sleep(60)
    >>> async def hook(context: HookContext) -> None:
    ...     context.spawn(refresh(), name="refresh")
    >>> context = HookContext()
    >>> await hook(context)
    >>> await context.stop()
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        if not task.cancelled() and (error := task.exception()):
            log_failed_attempt(log, error, "%s ended unexpectedly", task.get_name(), final=True)

    async def stop(self) -> None:
        while self._tasks:
            task = self._tasks.pop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


PostStartHook: TypeAlias = Callable[[HookContext], Awaitable[None]]
PreShutdownHook: TypeAlias = Callable[[], Awaitable[None]]


async def nothing_to_start(context: HookContext) -> None:
    """Placeholder for a hook of upstream without work here: only its health check exists."""


class HookFailed(Exception):
    """A hook raised an exception. A failed post-start hook ends the process.

    >>> from pilothouse.apiserver import HookFailed
    >>> print(HookFailed('PostStartHook "fill-cache" failed: no disk'))
    PostStartHook "fill-cache" failed: no disk
    """


@dataclass(slots=True, eq=False)
class PostStartEntry:
    name: str
    hook: PostStartHook
    done: bool = field(default=False)

    def health_check(self) -> HealthCheck:
        return HealthCheck(f"poststarthook/{self.name}", self._finished, boot_sequence=True)

    async def _finished(self) -> None:
        if not self.done:
            raise Unhealthy("not finished")

    async def run(self, context: HookContext) -> None:
        try:
            await self.hook(context)
        except Exception as error:
            raise HookFailed(f'PostStartHook "{self.name}" failed: {error}') from error
        self.done = True
        log.log(v(2), "PostStartHook %s finished", self.name)


@dataclass(frozen=True, slots=True)
class PreShutdownEntry:
    name: str
    hook: PreShutdownHook

    async def run(self) -> None:
        try:
            await self.hook()
        except Exception as error:
            raise HookFailed(f'PreShutdownHook "{self.name}" failed: {error}') from error


async def run_post_start_hooks(entries: list[PostStartEntry], context: HookContext) -> None:
    """Run all hooks. Raises the first HookFailed and cancels the other hooks."""
    try:
        async with asyncio.TaskGroup() as group:
            for entry in entries:
                group.create_task(entry.run(context), name=f"poststarthook/{entry.name}")
    except* HookFailed as failures:
        raise failures.exceptions[0] from None


async def run_pre_shutdown_hooks(entries: list[PreShutdownEntry]) -> list[HookFailed]:
    """Run all hooks, and return the failures."""
    failures = []
    for entry in entries:
        try:
            await entry.run()
        except HookFailed as failure:
            failures.append(failure)
    return failures
