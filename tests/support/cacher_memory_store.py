"""A store in memory that keeps the whole contract, and can be told to misbehave as real ones do.

`hold()` lets watches lag behind writes, `answers_progress` is switched off for an etcd that keeps silent,
`break_watches()` ends the running watches with an error, `unavailable` makes every read and write fail,
`before_answer` lets things happen while the answer to a list is on its way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.storage.errors import (
    Compacted,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
    Unavailable,
)
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision


class MemoryWatch:
    def __init__(self, store: MemoryStore, prefix: str, after: Revision) -> None:
        self._store = store
        self._prefix = prefix
        self._after = after
        self._batches: deque[Batch] = deque()
        self._error: StorageError | None = None
        self._changed = asyncio.Event()

    def pull(self) -> None:
        """Takes over what has happened since."""
        events = tuple(e for e in self._store.history if e.revision > self._after and e.key.startswith(self._prefix))
        if self._after < self._store.compacted:
            self.fail(Compacted(self._after, self._store.compacted))
        elif events:
            self._push(Batch(events[-1].revision, events))

    def fail(self, error: StorageError) -> None:
        self._error = self._error or error
        self._changed.set()

    def _push(self, batch: Batch) -> None:
        self._after = batch.revision
        self._batches.append(batch)
        self._changed.set()

    def __aiter__(self) -> MemoryWatch:
        return self

    async def __anext__(self) -> Batch:
        while not self._batches:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        return self._batches.popleft()

    async def request_progress(self) -> None:
        self._store.progress_requests += 1
        if self._store.answers_progress and not self._store.held:
            self.pull()
            self._push(Batch(self._store.revision))

    async def aclose(self) -> None:
        self._store.watches.discard(self)


class MemoryStore:
    def __init__(self) -> None:
        self.revision: Revision = 0
        self.entries: dict[str, Entry] = {}
        self.history: list[Event] = []
        self.compacted: Revision = 0
        self.watches: set[MemoryWatch] = set()
        self.held = False
        self.answers_progress = True
        self.unavailable = False
        self.progress_requests = 0
        self.reads: list[str] = []  # every get and list, by key or prefix
        self.before_answer: Callable[[], Awaitable[None]] | None = None  # runs between reading a list and answering it

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False
        for watch in tuple(self.watches):
            watch.pull()

    def break_watches(self, error: StorageError | None = None) -> None:
        for watch in tuple(self.watches):
            watch.fail(error or Unavailable("connection lost"))

    async def get(self, key: str) -> Entry | None:
        self._check()
        self.reads.append(key)
        return self.entries.get(key)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        self._check(ttl)
        if key in self.entries:
            raise KeyExists(key)
        return self._put(key, value, created=self.revision + 1)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        self._check(ttl)
        return self._put(key, value, created=self._expect(key, expected).created)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        self._check()
        self._expect(key, expected)
        return self.expire(key)[0]

    def expire(self, *keys: str) -> list[Entry]:
        """Deletes several keys at one revision, as etcd does when their lease runs out."""
        self.revision += 1
        gone = [self.entries.pop(key) for key in keys]
        self._record(*(Event(self.revision, old.key, None, old) for old in gone))
        return [Entry(old.key, old.value, old.created, self.revision) for old in gone]

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        self._check()
        self.reads.append(prefix)
        revision = self.revision if at is None else at
        found = [e for k, e in sorted(self._state(revision).items()) if k.startswith(prefix) and k > after]
        shown = found[:limit] if limit > 0 else found
        page = Page(shown, revision, len(found) - len(shown))
        if self.before_answer is not None:
            await self.before_answer()
        return page

    async def count(self, prefix: str) -> int:
        return sum(key.startswith(prefix) for key in self.entries)

    def watch(self, prefix: str, *, after: Revision) -> MemoryWatch:
        watch = MemoryWatch(self, prefix, after)
        self.watches.add(watch)
        if not self.held:
            watch.pull()
        return watch

    async def current_revision(self) -> Revision:
        self._check()
        return self.revision

    async def compact(self, revision: Revision) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        self.compacted = max(self.compacted, revision)

    async def ping(self) -> None:
        self._check()

    async def close(self) -> None:
        self.break_watches()

    def _check(self, ttl: int = 0) -> None:
        if ttl:
            raise ValueError("keys do not expire by themselves here, see expire()")
        if self.unavailable:
            raise Unavailable("the store is down")

    def _expect(self, key: str, expected: Revision) -> Entry:
        old = self.entries.get(key)
        if old is None:
            raise KeyNotFound(key)
        if old.modified != expected:
            raise RevisionConflict(key)
        return old

    def _put(self, key: str, value: bytes, *, created: Revision) -> Entry:
        self.revision += 1
        entry = Entry(key, value, created, self.revision)
        old, self.entries[key] = self.entries.get(key), entry
        self._record(Event(self.revision, key, entry, old))
        return entry

    def _record(self, *events: Event) -> None:
        self.history += events
        if not self.held:
            for watch in tuple(self.watches):
                watch.pull()

    def _state(self, revision: Revision) -> dict[str, Entry]:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        state: dict[str, Entry] = {}
        for event in self.history:
            if event.revision > revision:
                break
            if event.entry is None:
                del state[event.key]
            else:
                state[event.key] = event.entry
        return state
