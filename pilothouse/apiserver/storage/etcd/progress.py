"""Progress requests to a watch, repeated while callers wait.

etcd ignores the request while a watch catches up, so it is repeated. A single task sends: gRPC ends a call with two
concurrent writes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.stream import ServerWatch

# kube-apiserver's interval, and etcd's own interval for watches that have caught up.
_AGAIN_AFTER = 0.1

# Before these patch releases, a requested progress notification could overtake events (fixed in 3.4.25 and 3.5.8) or
# get lost (fixed in 3.4.31 and 3.5.13).
_FIXED_IN = {(3, 4): 31, (3, 5): 13}


class ProgressRequests:
    """Progress requests to watches, of which one is open at a time."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Request progress as soon as a capable watch is open and idle."""
        self._asked.set()

    @contextmanager
    def put_to(self, watch: ServerWatch) -> Iterator[None]:
        """Within the block, request progress from the watch as wanted, if it `answers_progress`."""
        if not watch.answers_progress:
            yield
            return
        self.ask()
        asking = asyncio.create_task(self._keep_asking(watch), name="etcd watch progress")
        try:
            yield
        finally:
            asking.cancel()

    async def _keep_asking(self, watch: ServerWatch) -> None:
        while True:
            await self._asked.wait()
            while self._wanted():
                self._asked.clear()
                await watch.request_progress()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_AFTER):
                        await self._asked.wait()
            self._asked.clear()


def answers_progress_requests(version: str) -> bool:
    """Return whether this etcd version answers progress requests correctly."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return (major, minor) > max(_FIXED_IN) or patch >= _FIXED_IN.get((major, minor), patch + 1)
