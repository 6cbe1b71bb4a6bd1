"""Readiness of the cache, and requests that wait for it."""

from __future__ import annotations

import asyncio
from math import exp

from pilothouse.apiserver.storage.cacher.clock import CacheClock, resolve, wait_for
from pilothouse.apiserver.storage.cacher.errors import CacheNotReady
from pilothouse.apiserver.storage.errors import StorageError, Undecodable

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
