"""Point-in-time profiles, under the names of Go's profiles.

A goroutine is a task or a thread. The profiles of blocking and of locks are always empty.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pilothouse.apiserver.profiling.profile import Frame, Kind, Profile, Stack, Values, task_stacks, thread_stacks

Take: TypeAlias = Callable[[], Awaitable[Profile]]

_MEMORY: tuple[Kind, ...] = (
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
)
_EVERYTHING: Stack = (Frame("[all objects]", "", 0),)


def _moment(kinds: tuple[Kind, ...], samples: Mapping[Stack, Values], kind: Kind) -> Profile:
    return Profile(kinds, samples, kind, 1, time.time_ns())


def _counted(name: str, stacks: Counter[Stack]) -> Profile:
    kind = (name, "count")
    return _moment((kind,), {stack: (count,) for stack, count in stacks.items()}, kind)


async def _goroutines() -> Profile:
    stacks = Counter(stack for _, stack in thread_stacks())
    async for _, stack in task_stacks():
        stacks[stack] += 1
    return _counted("goroutine", stacks)


async def _threads() -> Profile:
    """Count threads by start function."""
    stacks = Counter(stack[-3:] for _, stack in thread_stacks())
    stacks[()] += threading.active_count() - stacks.total()
    return _counted("threadcreate", +stacks)


async def _memory() -> Profile:
    """Profile memory by allocation site under PYTHONTRACEMALLOC, else as a single total."""
    if tracemalloc.is_tracing():
        return await asyncio.to_thread(_traced)
    blocks = sys.getallocatedblocks()
    return _moment(_MEMORY, {_EVERYTHING: (blocks, 0, blocks, 0)}, ("space", "bytes"))


def _traced() -> Profile:
    samples: dict[Stack, Values] = {}
    for statistic in tracemalloc.take_snapshot().statistics("traceback"):
        stack = tuple(Frame("", frame.filename, frame.lineno) for frame in reversed(statistic.traceback))
        samples[stack] = (statistic.count, statistic.size, statistic.count, statistic.size)
    return _moment(_MEMORY, samples, ("space", "bytes"))


async def _no_leaks() -> Profile:
    return _counted("goroutineleak", Counter())


async def _no_contention() -> Profile:
    return _moment((("contentions", "count"), ("delay", "nanoseconds")), {}, ("contentions", "count"))


SNAPSHOTS: dict[str, Take] = {
    "allocs": _memory,
    "block": _no_contention,
    "goroutine": _goroutines,
    "goroutineleak": _no_leaks,
    "heap": _memory,
    "mutex": _no_contention,
    "threadcreate": _threads,
}


async def full_dump() -> str:
    """Return all tasks and threads with whole stacks, in the format of Go's goroutine dumps."""
    parts = [_dumped(f"thread {thread.native_id} [{thread.name}]", stack) for thread, stack in thread_stacks()]
    async for task, stack in task_stacks():
        parts.append(_dumped(f"goroutine {task.get_name()} [await]", stack))
    return "\n".join(parts)


def _dumped(head: str, stack: Stack) -> str:
    return f"{head}:\n" + "".join(f"{frame.function}(...)\n\t{frame.file}:{frame.line}\n" for frame in stack)
