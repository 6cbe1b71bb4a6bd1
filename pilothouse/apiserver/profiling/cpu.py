"""CPU profile: a thread samples all other threads a hundred times per second, and adds up their CPU time by stack."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from pilothouse.apiserver.profiling.profile import Frame, Profile, Stack, thread_stacks

_PERIOD = 0.01
_MAX_STACKS = 20_000
_OTHERS: Stack = (Frame("[other stacks]", "", 0),)
"""Collects the time of further stacks once the profile is full."""


async def cpu_profile(seconds: float) -> Profile:
    """Sample for `seconds`; cancellation stops the sampling thread."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    finished: asyncio.Future[Profile] = loop.create_future()

    def hand_over(profile: Profile) -> None:
        if not finished.done():
            finished.set_result(profile)

    def work() -> None:
        profile = _sampled(seconds, stop)
        if not stop.is_set():
            loop.call_soon_threadsafe(hand_over, profile)

    threading.Thread(target=work, name="cpu-profile", daemon=True).start()
    try:
        return await finished
    finally:
        stop.set()


def _sampled(seconds: float, stop: threading.Event) -> Profile:
    started, end = time.time_ns(), time.monotonic() + seconds
    found: dict[Stack, tuple[int, int]] = {}
    clocks = _Clocks()
    while not stop.wait(max(0.0, min(_PERIOD, end - time.monotonic()))):
        for thread, stack in thread_stacks():
            if used := clocks.used_by(thread):
                place = stack if stack in found or len(found) < _MAX_STACKS else _OTHERS
                count, total = found.get(place, (0, 0))
                found[place] = (count + 1, total + used)
        if time.monotonic() >= end:
            break
    kinds = (("samples", "count"), ("cpu", "nanoseconds"))
    return Profile(kinds, found, kinds[1], int(_PERIOD * 1e9), started, time.time_ns() - started)


class _Clocks:
    """CPU time of threads since the previous reading."""

    def __init__(self, read: Callable[[int], int] | None = None) -> None:
        self._read = read or _cpu_time_of
        self._known: dict[int, int] = {}

    def used_by(self, thread: threading.Thread) -> int:
        """Return nanoseconds; 0 at the first reading, and for a thread that has ended."""
        native = thread.native_id
        if native is None:
            return 0
        try:
            now = self._read(native)
        except OSError:
            self._known.pop(native, None)
            return 0
        before = self._known.get(native, now)
        self._known[native] = now
        return now - before


def _cpu_time_of(native_id: int) -> int:
    """Read Linux's clock of the thread; the clock id is computed from the thread id (`man clock_getcpuclockid`)."""
    return time.clock_gettime_ns(~native_id << 3 | 6)
