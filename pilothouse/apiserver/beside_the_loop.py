"""Long work leaves the event loop here, and only here.

One event loop serves everybody, so nothing that a client sends may hold it for more than 50 ms. What may take longer
runs in one of three threads, by its size. Of these hardly more than one runs at a time, because threads share the
interpreter with the loop: each one that is busy takes as large a share of it as the loop has
(docs/decisions/beside-the-loop.md has the figures).

    obj = await request.weight.carry(decode, body)      of a request: here and now if it is light, else in a thread
    obj = await by_size(len(body), decode, body)        of nobody in particular

Work is handed over whole: what it touches belongs to its request alone until it is back, also when the request is
cancelled meanwhile. It may read what everybody shares, but must not change it, nor call the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from prometheus_client import Gauge

from pilothouse.apiserver.collector_pause import CollectorPause
from pilothouse.apiserver.fair_thread import FairThread, FairThreads, Job
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.machinery.server_errors import TooManyRequests

TRY_AGAIN_LATER = "Too many requests, please try again later."
WORTH_A_THREAD = 16 * 1024
"""Bytes of input. The slowest work we know costs 2.5 µs a byte, so that this much of it takes some 40 ms."""
TURN_BYTES = 16 * 1024
"""Bytes from a peer that are handled in one turn of the loop. The dearest cost less than 1 µs a byte, so that a turn
takes some 15 ms at most."""
_SMALL = 32 * 1024
_LARGE = 256 * 1024
"""Such work may take seconds. Each size has a thread of its own, so that small work does not wait for large work."""
_MOST_WAITING = 64 << 20
"""Bytes for which work of one flow may wait: what it holds while it waits is bounded."""
_RETRY_AFTER = 1

P = ParamSpec("P")
T = TypeVar("T")

_threads = FairThreads("beside-the-loop", (_SMALL, _LARGE))
_pause = CollectorPause()
_beside: ContextVar[bool] = ContextVar("beside the loop", default=False)

_RUNNING = Gauge("pilothouse_beside_the_loop_running", "Long work that a thread is at.", registry=REGISTRY)
_RUNNING.set_function(lambda: sum(thread.running is not None for thread in _threads.threads))
_WAITING = Gauge("pilothouse_beside_the_loop_waiting", "Long work that waits for a thread.", registry=REGISTRY)
_WAITING.set_function(lambda: sum(thread.waiting for thread in _threads.threads))


class TakesLong(Exception):
    """Raised by work on the loop that finds out late how long it would take. Nothing has been decided yet."""


class Weight:
    """How much a request is about, and whose it is: where its work is done, and in which turn, follows from that."""

    __slots__ = ("bytes", "flow", "is_carried", "was_carried")

    def __init__(self, flow: str = "", bytes: int = 0) -> None:
        self.flow = flow
        self.bytes = bytes
        """The size of the largest thing that it has to do with: its body, or a stored object."""
        self.was_carried = False
        """Whether work of it was done beside the loop before."""
        self.is_carried = False
        """Whether work of it waits for a thread, or is in a thread."""

    @property
    def is_light(self) -> bool:
        """Whether `carry` would do its work at once."""
        return self.bytes <= WORTH_A_THREAD

    @property
    def thread(self) -> FairThread:
        return _threads.of(self.bytes)

    def at_least(self, size: int) -> None:
        if size > self.bytes:
            self.bytes = size

    async def carry(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work at once if the request is light, else beside the loop. Raises what it raises, and
        TooManyRequests where too much of the same flow waits already."""
        if self.bytes <= WORTH_A_THREAD:
            return work(*args, **kwargs)
        if not self.was_carried and self.thread.waiting_bytes(self.flow) > _MOST_WAITING:
            raise TooManyRequests.of(TRY_AGAIN_LATER, _RETRY_AFTER)
        return await _in_thread(self, partial(work, *args, **kwargs))

    async def begin(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for work that may also raise TakesLong, and then begins again beside the loop.

        It must not mind that it was begun before.
        """
        try:
            return await self.carry(work, *args, **kwargs)
        except TakesLong:
            return await _in_thread(self, partial(work, *args, **kwargs))


async def by_size(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work at once if it is about at most WORTH_A_THREAD bytes, else beside the loop. Raises what it raises."""
    if size <= WORTH_A_THREAD:
        return work(*args, **kwargs)
    return await _in_thread(Weight(bytes=size), partial(work, *args, **kwargs))


async def beside_the_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work in a thread, in a copy of the caller's context. Raises what it raises.

    Work that has not begun when the caller is cancelled never begins; work that has is ended at its next checkpoint,
    and waited for until then.
    """
    return await _in_thread(Weight(), partial(work, *args, **kwargs))


def may_take_long() -> bool:
    """Whether the caller is beside the loop, and nobody waits for it."""
    return _beside.get()


async def _in_thread(weight: Weight, work: Callable[[], T]) -> T:
    loop, thread = asyncio.get_running_loop(), weight.thread
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()
    context.run(_beside.set, True)

    def done(result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the event loop is closed, so nobody waits
            loop.call_soon_threadsafe(_settle, future, result, error)

    job = Job(weight.flow, weight.bytes, partial(context.run, work), done, continues=weight.was_carried)
    weight.was_carried = weight.is_carried = True
    with _without_collections(weight):
        thread.submit(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not thread.withdraw(job):
                await _until_done(future)
            raise
        finally:
            weight.is_carried = False


@contextmanager
def _without_collections(weight: Weight) -> Iterator[None]:
    """Run the block without garbage collections, where these would take long."""
    if weight.bytes <= _LARGE:
        yield
        return
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()


async def _until_done(future: asyncio.Future[Any]) -> None:
    """Returns when the work is over, however often the caller is cancelled meanwhile."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    future.exception()


def _settle(future: asyncio.Future[T], result: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
