"""Keeps the mirror up to date while clients watch: by the author's watch function, or by polling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

from pilothouse.builder.function_backed.mirror import Mirror
from pilothouse.client.wait import Backoff
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import name_of, namespace_of

_TIMEOUT = 60.0  # seconds for a refresh; refreshes for clients have the timeout of their requests
_BACKOFF = Backoff(duration=0.5, factor=2.0, jitter=0.5, steps=10, cap=30.0)

_log = logging.getLogger(__name__)


class Following:
    """Follows the author's changes while clients watch, and makes no calls otherwise."""

    def __init__(self, mirror: Mirror, *, is_watched: Callable[[], bool], interval: float) -> None:
        self._mirror = mirror
        self._is_watched = is_watched
        self._interval = interval
        self._failing = False
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start following. Without a list function there is nothing to watch."""
        if "list" in self._mirror.functions.given:
            self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop following."""
        await _cancel(self._running)

    async def _run(self) -> None:
        following: asyncio.Task[None] | None = None
        try:
            while True:
                if self._is_watched() and following is None:
                    following = asyncio.create_task(self._follow())
                elif not self._is_watched() and following is not None:
                    await _cancel(following)
                    following = None
                await asyncio.sleep(self._interval)
        finally:
            await _cancel(following)

    async def _follow(self) -> None:
        if "watch" in self._mirror.functions.given:
            await self._listen_forever()
        else:
            while True:
                try:
                    await self._refresh()
                except Exception as error:
                    self._failed(error)
                await asyncio.sleep(self._interval)

    async def _listen_forever(self) -> None:
        delay = _BACKOFF.delays()
        while True:
            try:
                async with aclosing(self._changes()) as changes:
                    async for item in changes:
                        await self._changed(item)
                        delay = _BACKOFF.delays()
            except Exception as error:
                self._failed(error)
            await asyncio.sleep(delay())

    async def _changes(self) -> AsyncGenerator[object, None]:
        """Yield the items of the author's watch. A refresh after the start of the watch covers earlier changes."""
        changes = self._mirror.functions.watch()
        upcoming = asyncio.ensure_future(anext(changes))
        try:
            await yield_to_loop()
            await self._refresh()
            with suppress(StopAsyncIteration):
                while True:
                    item = await upcoming
                    upcoming = asyncio.ensure_future(anext(changes))
                    yield item
        finally:
            await _cancel(upcoming)
            if isinstance(changes, AsyncGenerator):
                await changes.aclose()

    async def _changed(self, item: object) -> None:
        """Refresh the changed object. An object, or a pair with an object, names it; any other item refreshes all."""
        obj = item[1] if isinstance(item, tuple) and len(item) == 2 else item
        keys = self._mirror.functions.keys
        if isinstance(obj, dict) and name_of(obj) and bool(namespace_of(obj)) is keys.namespaced:
            async with asyncio.timeout(_TIMEOUT):
                await self._mirror.refresh_one(namespace_of(obj), name_of(obj))
        else:
            await self._refresh()

    async def _refresh(self) -> None:
        async with asyncio.timeout(_TIMEOUT):
            await self._mirror.refresh()
        self._failing = False

    def _failed(self, error: Exception) -> None:
        """Log the first of a series of failures as a warning."""
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing = True
        resource = self._mirror.functions.reader.resource.group_resource
        _log.log(level, "cannot follow changes of %s, retrying: %s", resource, error or type(error).__name__)


async def _cancel(task: asyncio.Future[Any] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
