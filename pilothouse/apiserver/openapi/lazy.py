"""A value that is made once, in a thread, when it is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """Those who ask while it is being made wait for the same one; one of them going away does not stop it.

    When making it fails, all who wait get the error, and the next one to ask has it tried again.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._made: asyncio.Future[T] | None = None

    @classmethod
    def in_thread(cls, make: Callable[[], T]) -> Lazy[T]:
        return cls(lambda: asyncio.to_thread(make))

    async def get(self) -> T:
        if self._made is None or self._failed(self._made):
            self._made = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._made)

    @staticmethod
    def _failed(made: asyncio.Future[T]) -> bool:
        return made.done() and (made.cancelled() or made.exception() is not None)
