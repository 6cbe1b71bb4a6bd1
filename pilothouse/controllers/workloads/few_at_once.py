"""Many requests for one workload, of which a few are on their way at any moment.

A server and its controllers share an event loop: if hundreds of requests were on their way at once, every other client
would wait for all of them to take their turns, and none of them would be done earlier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

AT_ONCE = 16


async def few_at_once(work: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T | Exception]:
    """Do all of it, and return for each what it returned or raised, in order."""
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
