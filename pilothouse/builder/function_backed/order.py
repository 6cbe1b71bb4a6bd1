"""Order of overlapping answers and writes, so that no stale answer undoes a newer change.

An answer is as old as its question. An applied answer is ignored for
- keys that were written at any time since the question: the answer may be from before or after the write;
- keys that a later question has answered already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from pilothouse.apiserver.registry.stored_form import Keys


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
