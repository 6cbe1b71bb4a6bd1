"""Watching objects that live in an author's functions: changes are found by comparing, or told by the author."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from patience import PATIENCE
from shelves import ReadOnlyShelf, Shelf, book, next_event, next_title, retitled, served

from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.storage.cacher.events import INITIAL_EVENTS_END
from pilothouse.builder.function_backed import following
from pilothouse.client.wait import Backoff
from pilothouse.errors import Expired
from pilothouse.machinery.objects import Json


async def test_a_watch_sees_outside_changes_in_order(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        [emma] = await books.list()
        watcher = await books.watch(resource_version=emma["metadata"]["resourceVersion"])
        shelf.put("dracula", "Dracula")
        assert await next_title(watcher) == ("ADDED", "dracula", "Dracula")
        shelf.put("dracula", "Dracula II")
        assert await next_title(watcher) == ("MODIFIED", "dracula", "Dracula II")
        shelf.drop("dracula")
        kind, gone = await next_event(watcher)
        assert (kind, gone["spec"]["title"]) == ("DELETED", "Dracula II")
        assert int(gone["metadata"]["resourceVersion"]) > int(emma["metadata"]["resourceVersion"])


async def test_initial_events_come_first_and_end_with_a_bookmark(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(
            send_initial_events=True, resource_version_match="NotOlderThan", allow_watch_bookmarks=True
        )
        assert await next_title(watcher) == ("ADDED", "emma", "Emma")
        kind, mark = await next_event(watcher)
        assert kind == "BOOKMARK"
        assert mark["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
        shelf.put("emma", "Persuasion")
        assert await next_title(watcher) == ("MODIFIED", "emma", "Persuasion")


async def test_a_write_through_is_one_event(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(send_initial_events=False)
        await books.create(book("emma"))
        await books.change("emma", retitled("Persuasion"))
        await books.delete("emma")
        shelf.put("last", "Last")
        seen = [await next_title(watcher) for _ in range(4)]
        assert seen == [
            ("ADDED", "emma", "Emma"),
            ("MODIFIED", "emma", "Persuasion"),
            ("DELETED", "emma", "Persuasion"),
            ("ADDED", "last", "Last"),
        ]


async def test_the_author_is_asked_only_while_somebody_watches(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    async with served(tmp_path, shelf, poll_interval=0.001) as books:
        await asyncio.sleep(0.02)
        assert shelf.calls == []
        watcher = await books.watch()
        shelf.put("emma", "Emma")
        await next_event(watcher)
        watcher.abandon()
        async with asyncio.timeout(PATIENCE):
            while shelf.calls:
                shelf.calls.clear()
                await asyncio.sleep(0.05)


async def test_a_version_from_before_a_restart_is_gone(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        [first] = await books.list()
        shelf.put("emma", "Persuasion")
        await books.list()
        shelf.put("emma", "Sanditon")
        await books.list()
    async with served(tmp_path, shelf) as books:
        await books.store.compact(await books.store.current_revision())
        with pytest.raises(Expired) as raised:
            await books.watch(resource_version=first["metadata"]["resourceVersion"])
        assert raised.value.code == 410
        with pytest.raises(Expired):
            await books.list(resource_version=first["metadata"]["resourceVersion"], resource_version_match="Exact")


async def test_a_watch_goes_on_after_the_author_failed_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Moody(ReadOnlyShelf):
        fails = 0

        async def list(self, namespace: str) -> list[Json]:
            if self.fails:
                self.fails -= 1
                raise ConnectionError("no route to the library")
            return await super().list(namespace)

    shelf = Moody()
    async with served(tmp_path, shelf, poll_interval=0.001) as books:
        watcher = await books.watch()
        shelf.fails = 5
        shelf.put("emma", "Emma")
        assert await next_title(watcher) == ("ADDED", "emma", "Emma")
    warnings = [record for record in caplog.records if record.name == following.__name__]
    assert len([record for record in warnings if record.levelname == "WARNING"]) == 1


async def test_informers_of_the_registry_are_told_of_outside_changes(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    async with served(tmp_path, shelf) as books:
        informer, told = RegistryInformer(books.own.registry), asyncio.Event()
        informer.listen(lambda objects: told.set() if objects else None)
        running = asyncio.create_task(informer.run())
        try:
            await asyncio.sleep(0)
            shelf.put("emma", "Emma")
            async with asyncio.timeout(PATIENCE):
                await told.wait()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


class Announcing(Shelf):
    """Tells its changes itself. What it tells is put into `news`; an exception ends the watch."""

    def __init__(self) -> None:
        super().__init__()
        self.news: asyncio.Queue[object] = asyncio.Queue()
        self.is_followed, self.is_left = asyncio.Event(), asyncio.Event()

    async def watch(self) -> AsyncIterator[object]:
        try:
            while True:
                item = await self.news.get()
                if isinstance(item, Exception):
                    raise item
                if item == "end":
                    return
                yield item
        finally:
            self.is_left.set()

    async def list(self, namespace: str) -> list[Json]:
        found = await super().list(namespace)
        if not namespace:
            self.is_followed.set()
        return found


async def _followed(shelf: Announcing) -> None:
    """Its watch is listened to, and it has been asked for all that there was by then."""
    async with asyncio.timeout(PATIENCE):
        await shelf.is_followed.wait()
    shelf.calls.clear()


@pytest.mark.parametrize(
    ("item", "asked"),
    [
        (book("emma"), "get emma"),
        (("MODIFIED", book("emma")), "get emma"),
        (None, "list"),
        ("something", "list"),
        ({"metadata": {"name": "emma"}}, "list"),
    ],
)
async def test_the_authors_own_watch_says_what_may_have_changed(tmp_path: Path, item: object, asked: str) -> None:
    shelf = Announcing()
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(namespace="default")
        await _followed(shelf)
        shelf.put("emma", "Emma")
        shelf.news.put_nowait(item)
        assert await next_title(watcher) == ("ADDED", "emma", "Emma")
        assert shelf.calls == [asked]


@pytest.mark.parametrize("end", [ConnectionError("gone"), "end"])
async def test_an_authors_watch_that_ends_is_begun_again_and_nothing_is_missed(
    tmp_path: Path, end: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_BACKOFF", Backoff(duration=0.001))
    shelf = Announcing()
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(namespace="default")
        await _followed(shelf)
        shelf.put("emma", "Emma")
        shelf.news.put_nowait(end)
        assert await next_title(watcher) == ("ADDED", "emma", "Emma")


async def test_the_authors_watch_is_closed_after_the_last_watcher(tmp_path: Path) -> None:
    shelf = Announcing()
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(namespace="default")
        await _followed(shelf)
        watcher.abandon()
        async with asyncio.timeout(PATIENCE):
            await shelf.is_left.wait()
