"""Waiting reads: for the first fill of the cache (`Readiness`), and for a revision (`Freshness`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import exp

from pilothouse.apiserver.storage.cacher.clock import CacheClock, wait_for
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.errors import CacheNotReady, StorageError, Undecodable
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.event_loop import resolve

_LONGEST_RETRY = 30


class Readiness:
    ready: bool
    _since: float  # time of the last change of `ready`
    _cause: Exception | None  # known reason for not being ready
    _waiting: set[asyncio.Future[None]]

    def __init__(self, clock: CacheClock) -> None:
        self.ready = False
        self._clock = clock
        self._since = 0.0
        self._cause = None
        self._waiting = set()
        self._stopped = False

    def set_ready(self) -> None:
        self._cause = None
        self._turn(True)
        self._wake()

    def set_not_ready(self, cause: Exception | None) -> None:
        self._cause = cause
        self._turn(False)
        self._wake()

    def stop(self) -> None:
        """Stop for good, and wake all waiting requests."""
        self._stopped = True
        self._wake()

    async def wait(self, *, patience: float | None) -> None:
        """Wait until the cache is ready.

        Raises CacheNotReady after `patience` seconds, and Undecodable if objects are known to be undecodable.
        """
        started = self._clock.time()
        while not self.ready:
            left = None if patience is None else started + patience - self._clock.time()
            if self._stopped or isinstance(self._cause, Undecodable) or (left is not None and left <= 0):
                raise self._refusal()
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await wait_for(future, seconds=left, clock=self._clock)
            finally:
                self._waiting.discard(future)

    def _turn(self, ready: bool) -> None:
        if ready != self.ready:
            self.ready = ready
            self._since = self._clock.time()

    def _wake(self) -> None:
        for future in self._waiting:
            resolve(future)

    def _refusal(self) -> StorageError:
        """Return the error: a Retry-After that grows with the downtime, or Undecodable, which no retry cures."""
        if isinstance(self._cause, Undecodable):
            return Undecodable(str(self._cause))
        downtime = self._clock.time() - self._since
        return CacheNotReady(self._cause, retry_after=int(min(_LONGEST_RETRY, exp(0.06 * min(downtime, 100)))))


PROGRESS_PERIOD = 0.1
CONSISTENT_PATIENCE = 0.3
MISTRUST_PATIENCE = 0.02  # long enough for an event in flight


class Freshness:
    """The revision of the cache, and reads that wait for a later revision.

    While reads wait, progress is requested from the store every 100 ms: the newest revision may belong to another
    resource, and then no event would arrive.
    """

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
