"""Keeps a sink equal to a part of the store: lists it, watches it, and begins again when that fails.

The sink is told everything in order: `replace` with a whole listing, `apply` with each change after it, `progress`
when nothing changed up to a revision, `lost` when nothing more follows until the next `replace`. Long batches are
handed over in parts, between which others get their turn.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from pilothouse.apiserver.storage.cacher.clock import CacheClock, sleep
from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Event, Revision, Store, Watch
from pilothouse.machinery.event_loop import yield_to_loop

PAGE = 10_000
TURN_CHANGES, TURN_SECONDS = 100, 0.005  # after that others run: readers of watches first of all
FIRST_DELAY, LAST_DELAY = 0.05, 5.0
HEALTHY = 30.0  # a watch that lasted so long is no sign of trouble: the next failure starts with a short delay again

log = logging.getLogger(__name__)


class ProgressRequester:
    """Asks one watch how far it has come, one question at a time, however many want to know.

    A question asked while another is on its way is asked after it: the answer to that one may be older than what
    the second caller has to know.
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
        self._progress: ProgressRequester | None = None  # for the watch that is running

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"watch cache of {self._prefix}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def request_progress(self) -> None:
        """Asks the store how far the watch has come. The answer, if it comes, is `progress`."""
        if self._progress is not None:
            self._progress.request()

    async def _run(self) -> None:
        while True:
            started = self._clock.time()
            try:
                await self._list_and_watch()
            except StorageError as error:
                log.warning("%s: lost the store, listing again: %s", self._prefix, error)
                self._sink.lost(error)
            except Exception as error:
                log.exception("%s: unexpected failure, listing again", self._prefix)
                self._sink.lost(error)
            await sleep(self._delay(self._clock.time() - started), self._clock)

    def _delay(self, lasted: float) -> float:
        """Doubles with each failure. All caches lose the store at the same moment, so each waits a different time."""
        self._failures = 0 if lasted >= HEALTHY else self._failures + 1
        return min(FIRST_DELAY * (1 << min(self._failures, 10)), LAST_DELAY) * random.uniform(0.5, 1.0)

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
                for count, events in enumerate(_by_revision(batch.events), start=1):
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


def _by_revision(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Events of one revision stay together, or the cache would stop in the midst of it."""
    return (tuple(group) for _, group in groupby(events, key=lambda event: event.revision))
