"""Long work leaves the event loop here, and only here.

One event loop serves everybody, so nothing that a client sends may hold it for more than 50 ms. What may take longer
runs in one of a few threads. They are few because threads share the interpreter with the loop: each one that is busy
takes as large a share of it as the loop has.

    obj = await by_size(len(body), decode, body)     here and now if the body is small, else in a thread

Work is handed over whole: what it touches belongs to its request alone until it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import ParamSpec, TypeVar

WORTH_A_THREAD = 16 * 1024
"""Bytes of input. The slowest work we know costs 2.5 µs a byte, so that this much of it takes some 40 ms."""
_THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")


async def by_size(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work at once if it is about at most WORTH_A_THREAD bytes, else beside the loop. Raises what it raises."""
    if size <= WORTH_A_THREAD:
        return work(*args, **kwargs)
    return await beside_the_loop(work, *args, **kwargs)


async def beside_the_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work in a thread, in a copy of the caller's context. Raises what it raises.

    Work that has not begun when its request is cancelled never begins.
    """
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads(), lambda: context.run(work, *args, **kwargs))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="beside-the-loop")
