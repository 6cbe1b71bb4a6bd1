"""The mirror: the answers of the author's functions in a store, so that each change has a revision.

A refresh asks the author, compares the answer with the mirror, and writes the differences.

Answers and writes may overlap. No stale answer undoes a newer change: an answer is as old as its question, and is
ignored for
- keys that were written since the question, because the answer may be from before or after the write;
- keys that a later question has answered already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TypeAlias

from pilothouse.apiserver.registry.stored_form import Keys
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.builder.function_backed.comparing import Change, Comparer
from pilothouse.builder.function_backed.functions import Answer, Functions
from pilothouse.machinery.event_loop import Pacer

_PAGE_SIZE = 1000
_WRITE_BATCH = 256  # a store commits many writes together


class Mirror:
    """The mirror. A refresh raises the errors of `Functions` and StorageErrors of the mirror's store."""

    def __init__(self, store: Store, functions: Functions) -> None:
        self.store = store
        self.functions = functions
        self.order = Order(functions.keys)
        self.comparer = Comparer(functions.reader)
        self._flights = SingleFlight()

    async def refresh(self, namespace: str = "") -> None:
        """Refresh a namespace, or all. On return, the mirror is at least as new as this call."""
        scope = self.functions.keys.collection(namespace)
        await self._flights.join(scope, partial(self._refresh, scope, namespace))

    async def refresh_one(self, namespace: str, name: str) -> None:
        """Refresh one object. Raises BadRequest for an invalid name."""
        await self.refresh_key(self.functions.keys.object(namespace, name))

    async def refresh_key(self, key: str) -> None:
        if "get" in self.functions.given:
            await self._flights.join(key, partial(self._refresh_key, key))
        else:
            namespace, _ = self.functions.keys.names(key)
            await self.refresh(namespace)

    async def _refresh(self, scope: str, namespace: str) -> None:
        with self.order.asking(scope) as question:
            answers = await self.functions.list(namespace)
            await self._apply(question, {answer.key: answer for answer in answers})

    async def _refresh_key(self, key: str) -> None:
        with self.order.asking(key) as question:
            answer = await self.functions.get(key)
            await self._apply(question, {} if answer is None else {key: answer})

    async def _apply(self, question: Question, answers: dict[str, Answer]) -> None:
        async with self.order.applying(question):
            entries, pacer = await self._entries(question.scope), Pacer()
            changes: list[Change] = []
            for key in [*(entries.keys() - answers.keys()), *answers]:
                await pacer.yield_if_due()
                if self.order.is_newer_in_mirror(question, key):
                    continue
                if change := await self.comparer.compare(key, answers.get(key), entries.get(key)):
                    changes.append(change)
            for start in range(0, len(changes), _WRITE_BATCH):
                await self._write(changes[start : start + _WRITE_BATCH])

    async def _entries(self, scope: str) -> dict[str, Entry]:
        """Return the mirror's entries in a scope: the key of one object, or a prefix that ends with a slash."""
        if not scope.endswith("/"):
            entry = await self.store.get(scope)
            return {} if entry is None else {scope: entry}
        entries: dict[str, Entry] = {}
        pacer, after, remaining = Pacer(), "", 1
        while remaining:
            page = await self.store.list(scope, after=after, limit=_PAGE_SIZE)
            entries |= {entry.key: entry for entry in page.entries}
            after, remaining = page.entries[-1].key if page.entries else "", page.remaining
            await pacer.yield_if_due()
        return entries

    async def _write(self, changes: list[Change]) -> None:
        """Write the changes concurrently. Raises the first error after all writes have finished."""
        results = await asyncio.gather(*map(self._write_one, changes), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write_one(self, change: Change) -> None:
        """Write one change. A concurrently changed key (expired TTL) is left to the next refresh."""
        key, old = change.key, change.old
        with suppress(KeyExists, KeyNotFound, RevisionConflict):
            if change.value is None or change.replaces:
                assert old is not None, "only an existing entry is deleted"
                await self.store.delete(key, expected=old.modified)
            if change.value is None:
                return
            if old is None or change.replaces:
                entry = await self.store.create(key, change.value)
            else:
                entry = await self.store.update(key, change.value, expected=old.modified)
            self.comparer.written(change, entry)


Work: TypeAlias = Callable[[], Awaitable[None]]


class SingleFlight:
    """Runs one refresh at a time per scope. A caller joins only work that starts after the call."""

    _last: dict[str, _Flight]  # scope -> last flight: running, or waiting for the running one

    def __init__(self) -> None:
        self._last = {}

    async def join(self, scope: str, work: Work) -> None:
        """Join or start the work. Raises the errors of the work. Work without waiting callers is cancelled."""
        flight = self._last.get(scope)
        if flight is None or flight.started:
            flight = self._last[scope] = _Flight(work, after=flight)
            flight.task.add_done_callback(lambda _: self._leave(scope, flight))
        flight.waiting += 1
        try:
            await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._leave(scope, flight)
                flight.task.cancel()

    def _leave(self, scope: str, flight: _Flight) -> None:
        if self._last.get(scope) is flight:
            del self._last[scope]


class _Flight:
    def __init__(self, work: Work, after: _Flight | None) -> None:
        self.started = False
        self.waiting = 0
        self.task = asyncio.create_task(self._run(work, after))

    async def _run(self, work: Work, after: _Flight | None) -> None:
        if after is not None:
            await asyncio.wait([after.task])
        self.started = True
        await work()


class Question:
    """A pending question about one object, or about all objects under a prefix."""

    newer: set[str]  # keys and scopes with newer state in the mirror

    def __init__(self, scope: str, number: int, being_written: set[str]) -> None:
        self.scope = scope
        self.number = number
        self.newer = set(being_written)


class Order:
    _under_way: set[Question]
    _locks: dict[str, _KeyLock]  # keys that are being written or waited for
    _applying: asyncio.Lock

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._under_way = set()
        self._being_written: set[str] = set()
        self._locks = {}
        self._applying = asyncio.Lock()
        self._asked = 0

    @contextmanager
    def asking(self, scope: str) -> Iterator[Question]:
        """Register a question until its answer is applied."""
        self._asked += 1
        question = Question(scope, self._asked, self._being_written)
        self._under_way.add(question)
        try:
            yield question
        finally:
            self._under_way.discard(question)

    @asynccontextmanager
    async def applying(self, question: Question) -> AsyncIterator[None]:
        """Apply one answer at a time, with no write meanwhile. Earlier questions become stale for the scope."""
        async with self._applying:
            yield
            for other in self._under_way:
                if other.number < question.number:
                    other.newer.add(question.scope)

    def is_newer_in_mirror(self, question: Question, key: str) -> bool:
        """Whether the answer to the question is stale for the key."""
        newer = question.newer
        if not newer:
            return False
        namespace, _ = self._keys.names(key)
        return key in newer or self._keys.collection(namespace) in newer or self._keys.prefix in newer

    @asynccontextmanager
    async def writing(self, key: str) -> AsyncIterator[None]:
        """Write a key: one write at a time per key. Answers to overlapping questions ignore the key."""
        async with self._locked(key):
            self._being_written.add(key)
            try:
                for question in self._under_way:
                    question.newer.add(key)
                async with self._applying:
                    pass  # an answer may just have been applied to this key
                yield
            finally:
                self._being_written.discard(key)

    @asynccontextmanager
    async def _locked(self, key: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, _KeyLock())
        lock.wanted += 1
        try:
            async with lock:
                yield
        finally:
            lock.wanted -= 1
            if not lock.wanted:
                del self._locks[key]


class _KeyLock(asyncio.Lock):
    wanted = 0  # number of holders and waiters
