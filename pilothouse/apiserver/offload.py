"""Offloading: the only way for long work to leave the event loop.

One event loop serves all clients, so no request may hold the loop for more than 50 ms. Longer work runs in one of three
threads, chosen by size. Usually a single thread is busy: threads share the interpreter with the loop, and a busy thread
takes as large a share as the loop itself (figures: docs/decisions/offload.md).

    obj = await request.weight.run(decode, body)                work of a request: inline if light, else in a thread
    obj = await offload_by_size(len(body), decode, body)        work without a request

The data that offloaded work touches belongs to the request alone until the work returns, even if the request is
cancelled meanwhile. Offloaded work may read shared state, but must not change shared state or call the event loop.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from prometheus_client import Gauge

from pilothouse.apiserver.fair_thread import FairThread, FairThreads, Job
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.platform import resident_memory
from pilothouse.machinery.server_errors import TooManyRequests

TRY_AGAIN_LATER = "Too many requests, please try again later."
WORTH_A_THREAD = 16 * 1024
"""Input bytes above which work is offloaded. The slowest known work costs 2.5 µs a byte: about 40 ms at this size."""
TURN_BYTES = 16 * 1024
"""Bytes from a peer handled in one turn of the loop: at less than 1 µs a byte, a turn takes at most about 15 ms."""
_SMALL = 32 * 1024
_LARGE = 256 * 1024
"""Upper bounds of small and medium work. Each size has its own thread, so small work never waits for large work."""
_MOST_WAITING = 64 << 20
"""Maximum bytes of waiting work per flow; bounds the memory that waiting requests hold."""
_RETRY_AFTER = 1

P = ParamSpec("P")
T = TypeVar("T")

_threads = FairThreads("offload", (_SMALL, _LARGE))
_offloaded: ContextVar[bool] = ContextVar("offloaded", default=False)

_RUNNING = Gauge("pilothouse_offload_running", "Offloaded jobs that are running.", registry=REGISTRY)
_RUNNING.set_function(lambda: sum(thread.running is not None for thread in _threads.threads))
_WAITING = Gauge("pilothouse_offload_waiting", "Offloaded jobs that wait for a thread.", registry=REGISTRY)
_WAITING.set_function(lambda: sum(thread.waiting for thread in _threads.threads))


class NeedsOffload(Exception):
    """Raised by inline work that turns out to be long. The work must not have had effects yet."""


class Weight:
    """Size and owner of a request; decides in which thread, and in which turn, the request's work runs."""

    __slots__ = ("bytes", "flow", "is_offloaded", "was_offloaded")

    def __init__(self, flow: str = "", bytes: int = 0) -> None:
        self.flow = flow
        self.bytes = bytes
        """Size of the largest input: the body, or a stored object."""
        self.was_offloaded = False
        """Whether work of this request was offloaded before."""
        self.is_offloaded = False
        """Whether work of this request waits for a thread or runs in a thread."""

    @property
    def is_light(self) -> bool:
        """Whether `run` would execute inline."""
        return self.bytes <= WORTH_A_THREAD

    @property
    def thread(self) -> FairThread:
        return _threads.of(self.bytes)

    def at_least(self, size: int) -> None:
        if size > self.bytes:
            self.bytes = size

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` inline if the request is light, else in a thread, and return its result.

        Raises the exceptions of `work`, and TooManyRequests if too much work of the same flow waits already.
        """
        if self.bytes <= WORTH_A_THREAD:
            return work(*args, **kwargs)
        if not self.was_offloaded and self.thread.waiting_bytes(self.flow) > _MOST_WAITING:
            raise TooManyRequests.of(TRY_AGAIN_LATER, _RETRY_AFTER)
        return await _in_thread(self, partial(work, *args, **kwargs))

    async def run_or_restart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `run`, for restartable work that may raise NeedsOffload: such work restarts in a thread."""
        try:
            return await self.run(work, *args, **kwargs)
        except NeedsOffload:
            return await _in_thread(self, partial(work, *args, **kwargs))


async def offload_by_size(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` inline up to WORTH_A_THREAD bytes of input, else in a thread, and return its result."""
    if size <= WORTH_A_THREAD:
        return work(*args, **kwargs)
    return await _in_thread(Weight(bytes=size), partial(work, *args, **kwargs))


async def offload(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread, in a copy of the caller's context, and return its result.

    Cancelling the caller withdraws work that has not started. Running work ends at its next checkpoint, and the
    cancellation waits for that.
    """
    return await _in_thread(Weight(), partial(work, *args, **kwargs))


def is_offloaded() -> bool:
    """Whether the caller runs in an offload thread, where long work is allowed."""
    return _offloaded.get()


async def _in_thread(weight: Weight, work: Callable[[], T]) -> T:
    loop, thread = asyncio.get_running_loop(), weight.thread
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()
    context.run(_offloaded.set, True)

    def done(result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the event loop is closed, so nobody waits
            loop.call_soon_threadsafe(_settle, future, result, error)

    job = Job(weight.flow, weight.bytes, partial(context.run, work), done, continues=weight.was_offloaded)
    weight.was_offloaded = weight.is_offloaded = True
    with _without_collections(weight):
        thread.submit(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not thread.withdraw(job):
                # Wait until the work is over, even if the caller is cancelled repeatedly.
                while not future.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([future])
                future.exception()
            raise
        finally:
            weight.is_offloaded = False


@contextmanager
def _without_collections(weight: Weight) -> Iterator[None]:
    """Run the block without garbage collections, for work during which they would take long."""
    if weight.bytes <= _LARGE:
        yield
        return
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()


def _settle(future: asyncio.Future[T], result: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


_GRACE = 1.0
"""Seconds: watchers make copies of written objects."""
_LOOK_EVERY = 0.25
_LONGEST = 60.0
_MOST_GROWTH = 256 << 20


class CollectorPause:
    """Pauses the garbage collector during work on large objects, and for a moment after.

    A collection stops all threads while it examines new containers, and a body of 3 MB can have a million of them. They
    are JSON without cycles and are freed by reference counting, so examining them is useless. Young objects are still
    collected from time to time, and after large growth of memory, so that cycles of other code are freed
    (docs/decisions/offload.md). A separate thread ends the pause, even if the event loop ends.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._working = 0
        self._ended = 0.0  # when the last work ended
        self._paused = False

    def begin(self) -> None:
        """Begin a pause; a no-op if the collector was disabled elsewhere."""
        with self._changing:
            self._working += 1
            if self._paused or not gc.isenabled():
                return
            gc.disable()
            self._paused = True
        threading.Thread(target=self._look_after, name="collector-pause", daemon=True).start()

    def end(self) -> None:
        with self._changing:
            self._working -= 1
            self._ended = time.monotonic()

    def _look_after(self) -> None:
        collected, resident = time.monotonic(), _resident()
        while not self._is_over():
            if time.monotonic() - collected > _LONGEST or _resident() - resident > _MOST_GROWTH:
                gc.collect(1)
                collected, resident = time.monotonic(), _resident()
            time.sleep(_LOOK_EVERY)

    def _is_over(self) -> bool:
        with self._changing:
            if self._working or time.monotonic() - self._ended <= _GRACE:
                return False
            self._paused = False
            gc.enable()
            return True


def _resident() -> int:
    """Return the resident memory in bytes; 0 if unknown."""
    return resident_memory() or 0


_pause = CollectorPause()
