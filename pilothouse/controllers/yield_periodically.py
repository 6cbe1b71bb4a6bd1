"""Going through many objects without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

T = TypeVar("T")

_PER_TURN = 200


async def yield_periodically(objects: Iterable[T]) -> AsyncGenerator[T, None]:
    """Yield the objects; after every two hundred, the event loop gets its turn."""
    for number, each in enumerate(objects, start=1):
        yield each
        if number % _PER_TURN == 0:
            await asyncio.sleep(0)
