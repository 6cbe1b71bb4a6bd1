"""The revision of the cache, and reads that wait for a later revision.

While reads wait, progress is requested from the store every 100 ms: the newest revision may belong to another resource,
and then no event would arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.apiserver.storage.cacher.clock import CacheClock, resolve, wait_for
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.interface import Revision

PROGRESS_PERIOD = 0.1
CONSISTENT_PATIENCE = 0.3
MISTRUST_PATIENCE = 0.02  # long enough for an event in flight


class Freshness:
    revision: Revision  # every change up to it is in the cache
    _waiting: dict[asyncio.Future[None], Revision]
    _answers: bool  # whether the store answered the last progress requests; not every etcd does
    _epoch: int  # number of losses of the cache; waits never span a loss

    def __init__(self, clock: CacheClock, *, request_progress: Callable[[], None], metrics: CacheMetrics) -> None:
        self.revision = 0
        self._clock = clock
        self._request_progress = request_progress
        self._metrics = metrics
        self._waiting = {}
        self._answers = True
        self._epoch = 0

    def advance(self, revision: Revision) -> None:
        self.revision = max(self.revision, revision)
        for future, wanted in self._waiting.items():
            if wanted <= self.revision:
                resolve(future)

    def progress(self, revision: Revision) -> None:
        self._answers = True
        self.advance(revision)

    def invalidate(self) -> None:
        """Mark the cache as stale until the next `restart`."""
        self._epoch += 1
        for future in self._waiting:
            resolve(future)

    def restart(self, revision: Revision) -> None:
        """Restart at the revision of a listing, with a new watch."""
        self._answers = True
        self.revision = revision
        self.advance(revision)

    async def consistent(self, revision: Revision) -> bool:
        """Like `reached`, for callers that can read the store instead. After an unanswered progress request, requests
        are still sent but not waited for until the store answers again."""
        epoch = self._epoch
        reached = await self.reached(revision, patience=CONSISTENT_PATIENCE if self._answers else MISTRUST_PATIENCE)
        if not reached and epoch == self._epoch:
            self._answers = False
        return reached

    async def reached(self, revision: Revision, *, patience: float) -> bool:
        """Return whether the cache reaches the revision within so many seconds; False also after a loss."""
        if self.revision >= revision:
            return True
        epoch, started = self._epoch, self._clock.time()
        while (
            self.revision < revision and self._epoch == epoch and (left := started + patience - self._clock.time()) > 0
        ):
            self._request_progress()
            seconds = min(PROGRESS_PERIOD, left)
            future = asyncio.get_running_loop().create_future()
            self._waiting[future] = revision
            try:
                await wait_for(future, seconds=seconds, clock=self._clock)
            finally:
                del self._waiting[future]
        self._metrics.read_wait.observe(self._clock.time() - started)
        return self.revision >= revision and self._epoch == epoch
