"""The time that a server goes by: the machine's, or with --testing one that a test can stop, set and step.

Who takes the time here takes it from the server in whose tasks it runs; clients in the same process keep the machine's.
Limits of the serving itself (timeouts of requests, of connections, of webhooks) stay with the machine's, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pilothouse.machinery.adjustable_time import AdjustableTime

_ADJUSTABLE: ContextVar[AdjustableTime | None] = ContextVar("the time of this server", default=None)


class Cancellable(Protocol):
    def cancel(self) -> None: ...


def go_by(adjustable: AdjustableTime) -> None:
    """Have this task, and those that it begins from now on, go by this time."""
    _ADJUSTABLE.set(adjustable)


@contextmanager
def going_by(adjustable: AdjustableTime) -> Iterator[None]:
    """Have the block go by this time."""
    before = _ADJUSTABLE.set(adjustable)
    try:
        yield
    finally:
        _ADJUSTABLE.reset(before)


def wall() -> float:
    """Return seconds since 1970."""
    adjustable = _ADJUSTABLE.get()
    return time.time() if adjustable is None else adjustable.wall()


def monotonic() -> float:
    """Return seconds of a clock that never goes back; only differences mean anything."""
    adjustable = _ADJUSTABLE.get()
    return time.monotonic() if adjustable is None else adjustable.monotonic()


def call_later(seconds: float, callback: Callable[[], object]) -> Cancellable:
    """Call back in the running event loop when so much time has passed."""
    adjustable = _ADJUSTABLE.get()
    if adjustable is None:
        import asyncio  # here: help is written without it

        return asyncio.get_running_loop().call_later(seconds, callback)
    return adjustable.call_later(seconds, callback)


async def sleep(seconds: float) -> None:
    adjustable = _ADJUSTABLE.get()
    if adjustable is None:
        import asyncio

        await asyncio.sleep(seconds)
    else:
        await adjustable.sleep(seconds)
