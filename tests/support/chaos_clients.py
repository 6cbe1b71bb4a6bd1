"""Clients that change and read the same objects through all replicas at once, and write down what they were told.

Registers are objects that are read, written and written-if; sets are lists of objects that are created and deleted.
A new one is begun when the last has a long history, or more writes without an answer than a checker can think through.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

from chaos_ledger import UNANSWERED, Ledger, Written
from linearizability import Operation
from replicated_cluster import Replica

from pilothouse.client import Json, ListOptions, ResourceClient

NAMESPACE = "default"
ANSWERED_WITHIN = 5.0
_REGISTERS = 2
_MOST_OPERATIONS, _MOST_ELEMENTS, _MOST_UNANSWERED = 300, 40, 6
_PAUSE = 0.06


@asynccontextmanager
async def config_maps(replica: Replica, timeout: float = ANSWERED_WITHIN) -> AsyncIterator[ResourceClient]:
    """Over connections of their own."""
    async with replica.client(timeout) as client:
        yield client.resource("v1", "configmaps", namespace=NAMESPACE)


def in_time(ask: Callable[[], Awaitable[Json]]) -> Callable[[], Awaitable[Json]]:
    """With all attempts that the client makes."""

    async def asked() -> Json:
        async with asyncio.timeout(ANSWERED_WITHIN):
            return await ask()

    return asked


class Load:
    """The clients of one round."""

    def __init__(self, replicas: list[Replica], number: int, chance: random.Random) -> None:
        self.ledger = Ledger()
        self._replicas = replicas
        self._chance = chance
        self._values = (f"{number}.{value}" for value in count())
        self._registers = [_named(f"register-{number}-{index}") for index in range(_REGISTERS)]
        self._register = [next(names) for names in self._registers]
        self._sets = _named(f"set-{number}")
        self._set = next(self._sets)
        self._elements = count()
        self._stopping = False

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """At its end, what was begun has been answered, or nobody waits for it any more."""
        tasks = [
            asyncio.create_task(self._work(replica, step))
            for replica in self._replicas
            for step in (self._register_step, self._register_step, self._set_step, self._read_step)
        ]
        try:
            yield
        finally:
            self._stopping = True
            await asyncio.gather(*tasks)

    async def read_all(self) -> None:
        """Through each replica."""
        for replica in self._replicas:
            async with config_maps(replica) as objects:
                await self._read_through(objects)

    async def _read_through(self, objects: ResourceClient) -> None:
        for name in self.ledger.registers:
            await _until_answered(partial(self.ledger.read_register, name, in_time(partial(objects.get, name))))
        for name in self.ledger.sets:
            ask = in_time(partial(objects.list, _members(name)))
            await _until_answered(partial(self.ledger.read_set, name, ask))

    async def _work(self, replica: Replica, step: Callable[[ResourceClient], Awaitable[None]]) -> None:
        async with config_maps(replica) as objects:
            while not self._stopping:
                try:
                    await step(objects)
                except UNANSWERED:
                    await asyncio.sleep(_PAUSE)
                await asyncio.sleep(self._chance.uniform(0, _PAUSE))

    async def _read_step(self, objects: ResourceClient) -> None:
        """Who writes waits for an answer where there is none; what a lonely replica says is heard by those who read."""
        if self._chance.random() < 0.7:
            name = self._current_register(self._chance.randrange(_REGISTERS))
            await self.ledger.read_register(name, in_time(lambda: objects.get(name)))
        else:
            name = self._current_set()
            await self.ledger.read_set(name, in_time(lambda: objects.list(_members(name))))

    async def _register_step(self, objects: ResourceClient) -> None:
        """Read, and then perhaps write what depends on it, or does not."""
        name = self._current_register(self._chance.randrange(_REGISTERS))
        found = await self.ledger.read_register(name, in_time(lambda: objects.get(name)))
        if self._chance.random() < 0.6:
            await self._change(objects, name, found)

    async def _change(self, objects: ResourceClient, name: str, found: Written | None) -> None:
        value = next(self._values)
        obj: Json = {"metadata": {"name": name}, "data": {"value": value}}
        if found is None:
            await self.ledger.change("create", name, value, in_time(lambda: objects.create(obj)))
        elif self._chance.random() < 0.6:
            obj["metadata"]["resourceVersion"] = str(found.revision)
            expected = (found.value, value)
            await self.ledger.change("compare", name, expected, in_time(lambda: objects.update(obj)))
        else:
            await self.ledger.change("write", name, value, in_time(lambda: objects.update(obj)))

    async def _set_step(self, objects: ResourceClient) -> None:
        name, kind = self._current_set(), self._chance.random()
        if kind < 0.4:
            number = next(self._elements)
            obj = {"metadata": {"name": f"{name}-{number}", "labels": {"set": name}}}
            await self.ledger.alter("add", name, number, in_time(lambda: objects.create(obj)))
        elif kind < 0.55:
            added = [entry.argument for entry in self.ledger.sets[name] if entry.name == "add"]
            if added:
                number = self._chance.choice(added)
                await self.ledger.alter("remove", name, number, in_time(lambda: objects.delete(f"{name}-{number}")))
        else:
            limit = self._chance.choice([0, 500])
            await self.ledger.read_set(name, in_time(lambda: objects.list(_members(name, limit))))

    def _current_register(self, index: int) -> str:
        if _is_long(self.ledger.registers[self._register[index]], _MOST_OPERATIONS):
            self._register[index] = next(self._registers[index])
        return self._register[index]

    def _current_set(self) -> str:
        history = self.ledger.sets[self._set]
        if _is_long([entry for entry in history if entry.name == "add"], _MOST_ELEMENTS):
            self._set, self._elements = next(self._sets), count()
        return self._set


async def _until_answered(ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await ask()
            return
        except UNANSWERED:
            await asyncio.sleep(_PAUSE)


def _named(name: str) -> Iterator[str]:
    return (f"{name}-{number}" for number in count())


def _members(name: str, limit: int = 0) -> ListOptions:
    return ListOptions(label_selector=f"set={name}", limit=limit)


def _is_long(history: list[Operation], most: int) -> bool:
    return len(history) >= most or sum(not entry.is_known for entry in history) >= _MOST_UNANSWERED
