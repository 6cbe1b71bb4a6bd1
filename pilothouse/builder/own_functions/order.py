"""Which of several answers and writes that overlap is the newer one, so that nothing is undone or brought back.

An answer is as old as its question. When it is applied to the mirror, it says nothing about
- keys that were being written at any time since the question: the answer may be from before or after the write;
- what a later question has already answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from pilothouse.apiserver.registry.keys import Keys


class Question:
    """One that is under way, about an object or about all under a prefix."""

    newer: set[str]  # keys and scopes about which the mirror knows something newer than the answer

    def __init__(self, scope: str, number: int, being_written: set[str]) -> None:
        self.scope = scope
        self.number = number
        self.newer = set(being_written)


class Order:
    _under_way: set[Question]
    _locks: dict[str, _KeyLock]  # of the keys that are being written, or that somebody waits to write
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
        """Around the question and the use of its answer."""
        self._asked += 1
        question = Question(scope, self._asked, self._being_written)
        self._under_way.add(question)
        try:
            yield question
        finally:
            self._under_way.discard(question)

    @asynccontextmanager
    async def applying(self, question: Question) -> AsyncIterator[None]:
        """One answer at a time; no write begins meanwhile. Earlier questions are overtaken by this one."""
        async with self._applying:
            yield
            for other in self._under_way:
                if other.number < question.number:
                    other.newer.add(question.scope)

    def is_newer_in_mirror(self, question: Question, key: str) -> bool:
        """Whether the answer to the question says nothing about the key."""
        newer = question.newer
        if not newer:
            return False
        namespace, _ = self._keys.names(key)
        return key in newer or self._keys.collection(namespace) in newer or self._keys.prefix in newer

    @asynccontextmanager
    async def writing(self, key: str) -> AsyncIterator[None]:
        """One write at a time for each key. No answer to a question that overlaps touches the key."""
        async with self._locked(key):
            self._being_written.add(key)
            try:
                for question in self._under_way:
                    question.newer.add(key)
                async with self._applying:
                    pass  # an answer that was being applied may have been at this key
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
    wanted = 0  # by how many
