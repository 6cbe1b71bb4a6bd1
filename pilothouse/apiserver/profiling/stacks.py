"""The stacks of threads and of tasks. Both are cut at a depth, so that a profile stays small."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from types import CodeType, FrameType
from typing import Any

from pilothouse.apiserver.profiling.profile import Frame, Stack
from pilothouse.machinery.event_loop import yield_to_loop

_MAX_DEPTH = 64
_TASKS_AT_ONCE = 200
"""Walked before others get their turn."""


def thread_stacks() -> Iterator[tuple[threading.Thread, Stack]]:
    """All threads but the one that asks. Each stack is that of the moment at which it was reached."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident in threads and ident != threading.get_ident():
            yield threads[ident], stack_of(frame)


async def task_stacks() -> AsyncIterator[tuple[asyncio.Task[Any], Stack]]:
    """All tasks of this loop, with the coroutines that each awaits in turn."""
    for number, task in enumerate(asyncio.all_tasks()):
        if number % _TASKS_AT_ONCE == _TASKS_AT_ONCE - 1:
            await yield_to_loop()
        yield task, tuple(_awaited(task.get_coro()))[::-1]


def stack_of(frame: FrameType | None) -> Stack:
    found: list[Frame] = []
    while frame is not None and len(found) < _MAX_DEPTH:
        found.append(_frame(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def _awaited(coroutine: Any) -> Iterator[Frame]:
    """Outermost first. What is awaited at the end is a future, or something of C that has no frame."""
    for _ in range(_MAX_DEPTH):
        kind = "cr" if hasattr(coroutine, "cr_frame") else "ag" if hasattr(coroutine, "ag_frame") else "gi"
        frame = getattr(coroutine, f"{kind}_frame", None)
        if frame is None:
            return
        yield _frame(frame.f_code, frame.f_lineno)
        coroutine = getattr(coroutine, f"{kind}_{'yieldfrom' if kind == 'gi' else 'await'}")


def _frame(code: CodeType, line: int | None) -> Frame:
    return Frame(code.co_qualname, code.co_filename, line or code.co_firstlineno)
