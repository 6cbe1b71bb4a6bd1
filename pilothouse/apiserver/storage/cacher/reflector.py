"""The reflector: keeps a sink equal to a prefix of the store by list and watch, restarting after failures.

The sink receives calls in order: `replace` with a listing, `apply` with each later change, `progress` for a revision
without changes, `lost` when nothing follows until the next `replace`. Long batches are delivered in parts, with yields
in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from pilothouse.apiserver.storage.cacher.clock import CacheClock, sleep
from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Event, Revision, Store, Watch
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.failed_attempts import log_failed_attempt

PAGE = 10_000
TURN_CHANGES, TURN_SECONDS = 100, 0.005  # then yield: readers of watches come first
FIRST_DELAY, LAST_DELAY = 0.05, 5.0
HEALTHY = 30.0  # a watch of this duration resets the back-off

log = logging.getLogger(__name__)


class ProgressRequester:
    """Requests progress from one watch, one request at a time, for any number of callers.

    A request during a pending one is sent afterwards: the pending answer may be too old for the second caller.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def request(self) -> None:
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._request())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _request(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                await self._watch.request_progress()
            except StorageError as error:
                log.debug("no progress to be had: %s", error)


class ReflectorSink(Protocol):
    def replace(self, entries: Sequence[Entry], revision: Revision) -> None: ...

    def apply(self, events: Sequence[Event], revision: Revision) -> None: ...

    def progress(self, revision: Revision) -> None: ...

    def lost(self, error: Exception) -> None: ...


class StoreReflector:
    def __init__(self, store: Store, prefix: str, *, sink: ReflectorSink, clock: CacheClock) -> None:
        self._store = store
        self._prefix = prefix
        self._sink = sink
        self._clock = clock
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self._progress: ProgressRequester | None = None  # for the running watch

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"watch cache of {self._prefix}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def request_progress(self) -> None:
        """Request progress from the store. An answer arrives as `progress`."""
        if self._progress is not None:
            self._progress.request()

    async def _run(self) -> None:
        while True:
            started = self._clock.time()
            try:
                await self._list_and_watch()
            except Exception as error:
                log_failed_attempt(log, error, "%s: lost the store, listing again", self._prefix)
                self._sink.lost(error)
            # Jitter, because all caches lose the store at the same moment.
            self._failures = 0 if self._clock.time() - started >= HEALTHY else self._failures + 1
            delay = min(FIRST_DELAY * (1 << min(self._failures, 10)), LAST_DELAY) * random.uniform(0.5, 1.0)
            await sleep(delay, self._clock)

    async def _list_and_watch(self) -> None:
        page = await self._store.list(self._prefix, limit=PAGE)
        revision, entries = page.revision, list(page.entries)
        while page.remaining:
            page = await self._store.list(self._prefix, at=revision, after=entries[-1].key, limit=PAGE)
            entries += page.entries
        self._sink.replace(entries, revision)
        watch = self._store.watch(self._prefix, after=revision)
        self._progress = ProgressRequester(watch)
        try:
            async for batch in watch:
                if not batch.events:
                    self._sink.progress(batch.revision)
                turn = self._clock.time()
                # Grouped by revision, so that the cache never stops within a revision.
                revisions = groupby(batch.events, key=lambda event: event.revision)
                for count, events in enumerate((tuple(group) for _, group in revisions), start=1):
                    last = events[-1] is batch.events[-1]
                    self._sink.apply(events, batch.revision if last else events[-1].revision)
                    if not last and (count % TURN_CHANGES == 0 or self._clock.time() - turn > TURN_SECONDS):
                        await yield_to_loop()
                        turn = self._clock.time()
        finally:
            self._progress.cancel()
            self._progress = None
            await watch.aclose()
        raise Unavailable("the watch ended")
