"""Checks of objects that prove long are begun again in a thread, so that they do not hold up the event loop.

Who checks asks `may_take_long()`, and raises TakesLong where it may not and would. What is begun again must not mind
that it was begun before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

_in_thread: ContextVar[bool] = ContextVar("in_thread", default=False)


class TakesLong(Exception):
    """Nothing has been decided yet."""


def may_take_long() -> bool:
    return _in_thread.get()


async def in_time(check: Callable[[], None]) -> None:
    """Here and now if that does not take long. What the check raises is passed on."""
    try:
        check()
    except TakesLong:
        await asyncio.to_thread(_at_leisure, check)


def _at_leisure(check: Callable[[], None]) -> None:
    """In a thread, whose context is a copy, so that nobody else sees the change."""
    _in_thread.set(True)
    check()
