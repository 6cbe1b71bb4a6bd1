"""Bounded concurrency for many requests of one workload.

The server and its controllers share an event loop. Hundreds of concurrent requests would delay every other client
without finishing earlier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

AT_ONCE = 16


async def few_at_once(work: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T | Exception]:
    """Run all calls; return each result or exception, in order."""
    turns = iter(enumerate(work))
    results: dict[int, T | Exception] = {}

    async def take_turns() -> None:
        for number, do in turns:
            try:
                results[number] = await do()
            except Exception as error:
                results[number] = error

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(AT_ONCE, len(work))):
            tasks.create_task(take_turns())
    return [results[number] for number in range(len(work))]
