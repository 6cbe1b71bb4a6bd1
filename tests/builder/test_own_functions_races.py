"""Answers of an author that overlap with writes, with other answers, and with clients that give up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from shelves import Shelf, book, retitled, served

from pilothouse.builder.function_backed.mirror import SingleFlight
from pilothouse.errors import NotFound
from pilothouse.machinery.objects import Json, name_of


class Gate:
    """Holds up what passes after the work is done, until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


class SlowShelf(Shelf):
    """Answers what was there when it was asked, and lets tests hold up each function before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, Gate] = {}

    def hold(self, function: str) -> Gate:
        """The next call only."""
        self.gates[function] = Gate()
        return self.gates[function]

    async def _pass(self, function: str) -> None:
        if gate := self.gates.pop(function, None):
            await gate.wait()

    async def list(self, namespace: str) -> list[Json]:
        found = list(await super().list(namespace))
        await self._pass(f"list {namespace}".strip())
        return found

    async def get(self, name: str, namespace: str) -> Json | None:
        found = await super().get(name, namespace)
        await self._pass("get")
        return found

    async def create(self, obj: Json) -> None:
        await super().create(obj)
        await self._pass("create")

    async def update(self, obj: Json) -> None:
        await super().update(obj)
        await self._pass("update")

    async def delete(self, name: str, namespace: str) -> None:
        await super().delete(name, namespace)
        await self._pass("delete")


@pytest.fixture
def shelf() -> SlowShelf:
    shelf = SlowShelf()
    shelf.put("emma", "Emma")
    return shelf


async def test_a_list_that_began_before_a_delete_does_not_bring_the_object_back(
    tmp_path: Path, shelf: SlowShelf
) -> None:
    async with served(tmp_path, shelf) as books:
        gate = shelf.hold("list")
        listing = asyncio.create_task(books.list())
        await gate.reached.wait()
        await books.delete("emma")
        gate.opened.set()
        assert await listing == []


async def test_a_list_that_began_before_an_update_does_not_undo_it(tmp_path: Path, shelf: SlowShelf) -> None:
    async with served(tmp_path, shelf) as books:
        gate = shelf.hold("list")
        listing = asyncio.create_task(books.titles())
        await gate.reached.wait()
        await books.change("emma", retitled("Persuasion"))
        await books.create(book("dracula", "Dracula"))
        gate.opened.set()
        assert await listing == {"emma": "Persuasion", "dracula": "Dracula"}


@pytest.mark.parametrize("function", ["create", "update", "delete"])
async def test_a_list_during_a_write_leaves_the_object_to_the_write(
    tmp_path: Path, shelf: SlowShelf, function: str
) -> None:
    async with served(tmp_path, shelf) as books:
        await books.list()
        gate = shelf.hold(function)
        writes: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "create": lambda: books.create(book("dracula", "Dracula")),
            "update": lambda: books.change("emma", retitled("Persuasion")),
            "delete": lambda: books.delete("emma"),
        }
        writing = asyncio.create_task(writes[function]())
        await gate.reached.wait()
        assert await books.titles() == {"emma": "Emma"}
        gate.opened.set()
        await writing
        expected = {(name_of(row), row["spec"]["title"]) for row in shelf.rows.values()}
        assert set((await books.titles()).items()) == expected
        assert shelf.calls.count("update emma") == (function == "update")


async def test_an_older_answer_does_not_overwrite_a_newer_one(tmp_path: Path, shelf: SlowShelf) -> None:
    async with served(tmp_path, shelf) as books:
        gate = shelf.hold("list")
        listing = asyncio.create_task(books.titles())
        await gate.reached.wait()
        shelf.put("emma", "Persuasion")
        shelf.put("dracula", "Dracula")
        assert (await books.get("emma"))["spec"]["title"] == "Persuasion"
        gate.opened.set()
        assert await listing == {"emma": "Persuasion"}
        shelf.drop("dracula")
        gate = shelf.hold("list")
        shelf.put("sanditon", "Sanditon")
        listing = asyncio.create_task(books.titles())
        await gate.reached.wait()
        shelf.drop("sanditon")
        assert await books.titles("default") == {"emma": "Persuasion"}
        gate.opened.set()
        assert await listing == {"emma": "Persuasion"}


async def test_a_list_that_hangs_blocks_neither_writes_nor_other_namespaces(tmp_path: Path, shelf: SlowShelf) -> None:
    shelf.put("dracula", "Dracula", namespace="night")
    async with served(tmp_path, shelf) as books:
        gate = shelf.hold("list night")
        hanging = asyncio.create_task(books.list("night"))
        await gate.reached.wait()
        assert await books.titles("default") == {"emma": "Emma"}
        await books.change("emma", retitled("Persuasion"))
        await books.create(book("sanditon"))
        assert (await books.get("dracula", "night"))["spec"]["title"] == "Dracula"
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert await books.titles("night") == {"dracula": "Dracula"}


async def test_a_write_whose_client_gives_up_is_seen_by_the_next_read(tmp_path: Path, shelf: SlowShelf) -> None:
    async with served(tmp_path, shelf) as books:
        await books.list()
        gate = shelf.hold("update")
        writing = asyncio.create_task(books.change("emma", retitled("Persuasion")))
        await gate.reached.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await books.titles() == {"emma": "Persuasion"}
        await books.delete("emma")
        with pytest.raises(NotFound):
            await books.get("emma")


async def test_writes_of_one_object_take_turns(tmp_path: Path, shelf: SlowShelf) -> None:
    def count(obj: Json) -> None:
        obj["spec"]["lent"] = obj["spec"].get("lent", 0) + 1

    async with served(tmp_path, shelf) as books:
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(books.change("emma", count) for _ in range(10)))
        assert shelf.rows["default", "emma"]["spec"]["lent"] == 10
        assert shelf.calls.count("update emma") == 10


async def test_nothing_is_remembered_of_objects_that_are_gone(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        for name in ("a", "b", "c"):
            await books.create(book(name))
            await books.get(name)
            await books.delete(name)
            with pytest.raises(NotFound):
                await books.get(f"never-{name}")
        mirror = books.own.mirror
        assert (mirror.comparer._known, mirror.order._locks, mirror._flights._last) == ({}, {}, {})


class TestSingleFlight:
    async def test_whoever_comes_while_work_is_under_way_waits_for_the_next(self) -> None:
        flights, gate = SingleFlight(), Gate()
        begun: list[int] = []

        async def work() -> None:
            begun.append(len(begun))
            await gate.wait()

        first = asyncio.create_task(flights.join("a", work))
        await gate.reached.wait()
        others = [asyncio.create_task(flights.join("a", work)) for _ in range(3)]
        await asyncio.sleep(0)
        assert begun == [0]
        gate.opened.set()
        await asyncio.gather(first, *others)
        assert begun == [0, 1]
        assert flights._last == {}

    async def test_what_it_raises_is_raised_to_all_who_wait_and_the_next_begins_anew(self) -> None:
        flights, times = SingleFlight(), 0

        async def work() -> None:
            nonlocal times
            times += 1
            if times == 1:
                raise ValueError("once")

        results = await asyncio.gather(*(flights.join("a", work) for _ in range(3)), return_exceptions=True)
        assert [str(result) for result in results] == ["once"] * 3
        await flights.join("a", work)

    async def test_work_goes_on_until_the_last_who_waits_gives_up(self) -> None:
        flights, gate, ended = SingleFlight(), Gate(), asyncio.Event()

        async def work() -> None:
            try:
                await gate.wait()
            finally:
                ended.set()

        waiting = [asyncio.create_task(flights.join("a", work)) for _ in range(2)]
        await gate.reached.wait()
        waiting[0].cancel()
        await asyncio.sleep(0.01)
        assert not ended.is_set()
        waiting[1].cancel()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert flights._last == {}
