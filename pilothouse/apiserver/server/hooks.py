"""Hooks: post-start hooks run side by side once the server listens; pre-shutdown hooks run, one after the other,
when a shutdown begins and the server still answers.

A post-start hook may run on several servers at once, may meet what an earlier run left half done, and may find that
requests are served before it has finished. Until it has, its health check `poststarthook/<name>` fails.
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

log = logging.getLogger(__name__)


class HookContext:
    """The means of a post-start hook: work that it spawns goes on after the hook returns and is cancelled, last
    spawned first, when the server stops.

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
            log.error("%s ended unexpectedly", task.get_name(), exc_info=error)

    async def stop(self) -> None:
        while self._tasks:
            task = self._tasks.pop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


PostStartHook: TypeAlias = Callable[[HookContext], Awaitable[None]]
PreShutdownHook: TypeAlias = Callable[[], Awaitable[None]]


async def nothing_to_start(context: HookContext) -> None:
    """Stands for a hook of upstream whose work is not needed here: its check is there for those who look for it."""


class HookFailed(Exception):
    """A hook raised; a post-start hook that does so ends the process.

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
    """Returns when all have finished. Raises the first HookFailed and cancels those that still run."""
    try:
        async with asyncio.TaskGroup() as group:
            for entry in entries:
                group.create_task(entry.run(context), name=f"poststarthook/{entry.name}")
    except* HookFailed as failures:
        raise failures.exceptions[0] from None


async def run_pre_shutdown_hooks(entries: list[PreShutdownEntry]) -> list[HookFailed]:
    """Runs all of them, whatever becomes of each, and answers the failures."""
    failures = []
    for entry in entries:
        try:
            await entry.run()
        except HookFailed as failure:
            failures.append(failure)
    return failures
