"""Time of a server: real time, or with --testing an adjustable time.

Code running in a server's tasks uses the server's time; clients in the same process use real time. Timeouts of serving
itself (requests, connections, webhooks) always use real time.
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


class PendingCall:
    """A call of `callback` when the time is `due`, unless cancelled."""

    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due, self.callback = due, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def go_by(adjustable: AdjustableTime) -> None:
    """Use this time in the current task and in tasks started from now on."""
    _ADJUSTABLE.set(adjustable)


@contextmanager
def going_by(adjustable: AdjustableTime) -> Iterator[None]:
    """Use this time in the block."""
    before = _ADJUSTABLE.set(adjustable)
    try:
        yield
    finally:
        _ADJUSTABLE.reset(before)


def wall() -> float:
    """Return seconds since the epoch."""
    adjustable = _ADJUSTABLE.get()
    return time.time() if adjustable is None else adjustable.wall()


def monotonic() -> float:
    """Return seconds on a monotonic clock; only differences are meaningful."""
    adjustable = _ADJUSTABLE.get()
    return time.monotonic() if adjustable is None else adjustable.monotonic()


def call_later(seconds: float, callback: Callable[[], object]) -> Cancellable:
    """Call `callback` in the running event loop after `seconds`."""
    adjustable = _ADJUSTABLE.get()
    if adjustable is None:
        import asyncio  # imported here, because the help output does not need asyncio

        return asyncio.get_running_loop().call_later(seconds, callback)
    return adjustable.call_later(seconds, callback)


async def sleep(seconds: float) -> None:
    adjustable = _ADJUSTABLE.get()
    if adjustable is None:
        import asyncio

        await asyncio.sleep(seconds)
    else:
        await adjustable.sleep(seconds)
