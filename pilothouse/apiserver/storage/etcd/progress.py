"""Asks a watch how far it has come, for as long as somebody waits for more than it has told.

etcd leaves the question unanswered while the watch catches up with old events, so it is put again. Only one task
asks, because gRPC ends a call to which two messages are written at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.etcd.stream import ServerWatch

# As often as kube-apiserver asks; etcd looks for watches that have caught up as often.
_AGAIN_AFTER = 0.1

# Before these patch releases of 3.4 and 3.5, a requested progress notification could overtake events (fixed in 3.4.25
# and 3.5.8) or never come (fixed in 3.4.31 and 3.5.13).
_FIXED_IN = {(3, 4): 31, (3, 5): 13}


class ProgressRequests:
    """Questions to the watches of which only one is open at a time."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """At once, if a watch is open that answers and nothing is being written to it, or as soon as that is so."""
        self._asked.set()

    @contextmanager
    def put_to(self, watch: ServerWatch) -> Iterator[None]:
        """Inside, the watch is asked whenever progress is wanted, if it `answers_progress`."""
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
    """Whether a watch of an etcd of this version can be asked how far it has come, and answers rightly."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return (major, minor) > max(_FIXED_IN) or patch >= _FIXED_IN.get((major, minor), patch + 1)
