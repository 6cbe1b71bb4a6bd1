"""Cooperative scheduling of CPU-bound work on the event loop, and parts of asynchronous services.

    await yield_to_loop()                           one turn
    async for pod in yield_periodically(pods): …    one turn after every 200 items
    pacer = Pacer(); await pacer.yield_if_due()     one turn after every 10 ms of work

Work with a single long item belongs into a thread: `apiserver/offload.py`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Iterable
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")

_ITEMS_PER_TURN = 200
_SECONDS_PER_TURN = 0.01


def yield_to_loop() -> Coroutine[Any, Any, None]:
    """Run every ready task once."""
    return asyncio.sleep(0)


async def yield_periodically(items: Iterable[T], *, every: int = _ITEMS_PER_TURN) -> AsyncGenerator[T, None]:
    """Yield the items; run other tasks after every `every` items."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


def resolve(future: asyncio.Future[None]) -> None:
    """Resolve a future unless it is already done."""
    if not future.done():
        future.set_result(None)


class RunUntilCancelled(ABC):
    """Base of services that only need to be closed at the end."""

    async def run(self) -> None:
        """Run until cancelled, then `close`."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    @abstractmethod
    async def close(self) -> None: ...


class Pacer:
    """Limits how long work with items of unequal cost holds the event loop."""

    def __init__(self) -> None:
        self._turn_began = perf_counter()

    async def yield_if_due(self) -> None:
        """Run other tasks if this task has held the event loop for 10 ms."""
        if perf_counter() - self._turn_began > _SECONDS_PER_TURN:
            await asyncio.sleep(0)
            self._turn_began = perf_counter()
