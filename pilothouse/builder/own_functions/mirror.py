"""The mirror: what the author's functions answered, in a store, where each change has a revision.

A refresh asks, compares the answer with the mirror, and writes what differs. What it does not write is as it was.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.builder.own_functions.answers import Answer
from pilothouse.builder.own_functions.comparing import Change, Comparer
from pilothouse.builder.own_functions.functions import Functions
from pilothouse.builder.own_functions.order import Order, Question
from pilothouse.builder.own_functions.single_flight import SingleFlight
from pilothouse.machinery.event_loop import Pacer

_PAGE = 1000
_WRITES_AT_ONCE = 256  # a store makes many writes durable in one go


class Mirror:
    """A refresh raises what the author's function raises (functions.py), and StorageErrors of the mirror's store."""

    def __init__(self, store: Store, functions: Functions) -> None:
        self.store = store
        self.functions = functions
        self.order = Order(functions.keys)
        self.comparer = Comparer(functions.reader)
        self._flights = SingleFlight()

    async def refresh(self, namespace: str = "") -> None:
        """Returns when the mirror has what the author has, of one namespace or of all: not older than this call."""
        scope = self.functions.keys.collection(namespace)
        await self._flights.join(scope, partial(self._refresh, scope, namespace))

    async def refresh_one(self, namespace: str, name: str) -> None:
        """The same for one object. Raises BadRequest for names that nothing can have."""
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
            for start in range(0, len(changes), _WRITES_AT_ONCE):
                await self._write(changes[start : start + _WRITES_AT_ONCE])

    async def _entries(self, scope: str) -> dict[str, Entry]:
        """Those of the mirror by their keys. A scope is the key of one object, or a prefix, which ends with a slash."""
        if not scope.endswith("/"):
            entry = await self.store.get(scope)
            return {} if entry is None else {scope: entry}
        entries: dict[str, Entry] = {}
        pacer, after, remaining = Pacer(), "", 1
        while remaining:
            page = await self.store.list(scope, after=after, limit=_PAGE)
            entries |= {entry.key: entry for entry in page.entries}
            after, remaining = page.entries[-1].key if page.entries else "", page.remaining
            await pacer.yield_if_due()
        return entries

    async def _write(self, changes: list[Change]) -> None:
        """All at once. Raises the first error after all have been tried."""
        results = await asyncio.gather(*map(self._write_one, changes), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write_one(self, change: Change) -> None:
        """A key that changed under our hands, because a time to live ran out, is left to the next refresh."""
        key, old = change.key, change.old
        with suppress(KeyExists, KeyNotFound, RevisionConflict):
            if change.value is None or change.replaces:
                assert old is not None, "what is not there is not deleted"
                await self.store.delete(key, expected=old.modified)
            if change.value is None:
                return
            if old is None or change.replaces:
                entry = await self.store.create(key, change.value)
            else:
                entry = await self.store.update(key, change.value, expected=old.modified)
            self.comparer.written(change, entry)
