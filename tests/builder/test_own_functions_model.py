"""Whatever happens outside and through the server: a list is what the author has, and a watch replays to the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from shelves import Served, Shelf, book, next_event, retitled, served

from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.errors import StatusError
from pilothouse.machinery.objects import Json, name_of

NAMES = st.sampled_from(["a", "b", "c"])
TITLES = st.sampled_from(["Emma", "Dracula"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "create", "change"]), NAMES, TITLES),
    st.tuples(st.sampled_from(["drop", "delete"]), NAMES, st.just("")),
)


class Archive(Shelf):
    keeps = ("uid", "creationTimestamp", "generation")


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), at_once=st.booleans(), author=st.sampled_from([Shelf, Archive]))
def test_lists_and_watches_are_what_the_author_has(
    steps: list[tuple[str, str, str]], at_once: bool, author: type[Shelf]
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder), author(), steps, at_once=at_once))


async def _play(folder: Path, shelf: Shelf, steps: list[tuple[str, str, str]], *, at_once: bool) -> None:
    async with served(folder, shelf) as books:
        watcher = await books.watch()
        replayed: dict[str, Json] = {}
        if at_once:
            await asyncio.gather(*(_take(books, shelf, step) for step in steps))
            await _check(books, shelf, watcher, replayed)
        for step in steps:
            await _take(books, shelf, step)
            await _check(books, shelf, watcher, replayed)


async def _take(books: Served, shelf: Shelf, step: tuple[str, str, str]) -> None:
    action, name, title = step
    with suppress(StatusError, KeyError):
        match action:
            case "put":
                shelf.put(name, title)
            case "drop":
                shelf.drop(name)
            case "create":
                await books.create(book(name, title))
            case "change":
                await books.change(name, retitled(title))
            case "delete":
                await books.delete(name)


async def _check(books: Served, shelf: Shelf, watcher: CacheWatcher, replayed: dict[str, Json]) -> None:
    objects = {name_of(obj): obj for obj in await books.list()}
    assert {name: obj["spec"] for name, obj in objects.items()} == {
        name: row["spec"] for (_, name), row in shelf.rows.items()
    }
    while replayed != objects:
        kind, obj = await next_event(watcher)
        if kind == "DELETED":
            del replayed[name_of(obj)]
        else:
            assert (kind == "ADDED") is (name_of(obj) not in replayed)
            replayed[name_of(obj)] = obj
