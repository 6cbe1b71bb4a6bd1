"""The way of a write: checked in memory, given a revision, committed with others, then published.

A write is checked against the newest accepted state, so writers of one key need not wait for each other's fsync.
It returns, and reads and watches see it, only when it is on disk. While one batch is being committed, the writes
that arrive form the next one:

    create a ─┐                          create b, update a, delete c ─┐
              └ commit {a} ── fsync ── publish {a}                     └ commit {b, a, c} ── fsync ── publish …

When a commit fails, its writes fail, and so do those accepted behind it, because they were checked against a
state that never came to be. Nothing of them remains: the next write starts from the durable state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Event
from pilothouse.apiserver.storage.sqlite.commit import ChangeRow, commit
from pilothouse.apiserver.storage.sqlite.health import StoreHealth
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread, JobOutcome
from pilothouse.machinery.dataclass import dataclass

_MOST_TURNS = 16
"""Turns of the event loop for which a batch may grow while the disk has nothing to do."""

# Why a write does not fit a state of its key; None if it fits.
Check: TypeAlias = Callable[[Entry | None], StorageError | None]


@dataclass(slots=True)
class Write(ChangeRow):
    """An accepted write: what it changes, what it answers, and who waits for it."""

    ttl: int
    answer: Entry
    done: asyncio.Future[Entry]


Publish: TypeAlias = Callable[[Sequence[Write]], None]


class Pipeline:
    """Accepts writes and takes them to disk in batches, in revision order.

    `publish` is called with each batch that is on disk, and must bring it into the state.
    """

    _pending: dict[str, Write]  # the newest accepted write of each key that has one which is not durable
    _queue: list[Write]  # accepted, to be committed next
    _running: list[Write]  # being committed now; with _queue these are all writes that are not settled
    _settling: list[asyncio.Future[None]]  # to be woken when the next batch is settled

    def __init__(self, writer: ConnectionThread, state: StoreState, *, publish: Publish, health: StoreHealth) -> None:
        self._writer = writer
        self._state = state
        self._publish = publish
        self._health = health
        self._loop = asyncio.get_running_loop()
        self._revision = state.revision  # of the newest accepted write
        self._pending = {}
        self._queue = []
        self._running = []
        self._settling = []
        self._closed = False

    async def write(
        self, key: str, value: bytes | None, *, check: Check, ttl: int = 0, expires: float | None = None
    ) -> Entry:
        """Sets the value, or deletes the key for None. Raises what `check` answers. `expires` is what the file is to
        say of a ttl.

        A refusal must rest on durable grounds: what refuses a write may itself still fail, and whoever is told
        that a key exists must be able to read it. Otherwise the write waits and is checked again.
        """
        while check(self._newest(key)) is not None:
            refusal = check(self._state.get(key))
            if refusal is not None:
                raise refusal
            await self._settled()
        return await self._accept(key, value, ttl, expires)

    async def close(self) -> None:
        """Refuses new writes and returns when the accepted ones are settled."""
        self._closed = True
        while self._queue or self._running:
            await self._settled()

    def _newest(self, key: str) -> Entry | None:
        pending = self._pending.get(key)
        return pending.event.entry if pending else self._state.get(key)

    def _accept(self, key: str, value: bytes | None, ttl: int, expires: float | None) -> asyncio.Future[Entry]:
        if self._closed:
            raise Unavailable("the store is closed")
        revision = self._revision + 1
        previous = self._newest(key)
        created = previous.created if previous else revision
        event = Event(revision, key, None if value is None else Entry(key, value, created, revision), previous)
        write = Write(event, expires, ttl, event.entry or _deleted(event), self._loop.create_future())
        self._revision = event.revision
        self._pending[key] = write
        if not self._queue and not self._running:
            # Not at once: the writes of other tasks that are about to run join the batch.
            self._loop.call_soon(self._commit_grown, 1, _MOST_TURNS)
        self._queue.append(write)
        return write.done

    def _commit_grown(self, size: int, turns: int) -> None:
        """Waits a little longer as long as others join: a commit of few costs nearly as much as one of many."""
        if len(self._queue) > size and turns:
            self._loop.call_soon(self._commit_grown, len(self._queue), turns - 1)
        else:
            self._commit_next()

    def _commit_next(self) -> None:
        if self._queue and not self._running:
            self._running, self._queue = self._queue, []
            self._health.commit_started()
            self._writer.send(partial(commit, rows=self._running), self._committed)

    def _committed(self, outcome: JobOutcome[None]) -> None:
        batch, self._running = self._running, []
        if outcome.error is None:
            self._health.commit_succeeded()
            self._commit_next()  # first of all, so that the disk works while this batch is published
            self._publish(batch)
            for write in batch:
                if self._pending[write.event.key] is write:
                    del self._pending[write.event.key]
                if not write.done.done():
                    write.done.set_result(write.answer)
        else:
            error = outcome.error
            behind, self._queue = self._queue, []
            self._pending.clear()
            self._revision = self._state.revision
            self._health.commit_failed(error)
            uncertain = error.uncertain if isinstance(error, Unavailable) else True
            _fail(batch, Unavailable(str(error), uncertain=uncertain))
            _fail(behind, Unavailable(str(error)))
        settling, self._settling = self._settling, []
        for waiter in settling:
            if not waiter.done():
                waiter.set_result(None)

    async def _settled(self) -> None:
        """Returns when the next batch is settled. Only to be called while a write is not."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._settling.append(waiter)
        await waiter


def _deleted(event: Event) -> Entry:
    """Return the answer of a delete: the last value, at the revision of the delete."""
    assert event.previous is not None
    return Entry(event.key, event.previous.value, event.previous.created, event.revision)


def _fail(writes: list[Write], error: Unavailable) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_exception(Unavailable(str(error), uncertain=error.uncertain))
