"""Reading objects that live in an author's functions: as fresh as the request, and with all that clients expect."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from machine_speed import slowness
from shelves import BOOKS, RESOURCE, ReadOnlyShelf, Shelf, book, context, served

from pilothouse.apiserver.endpoints.install import verbs_of
from pilothouse.apiserver.registry.options import ListOptions
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.errors import Forbidden, InternalError, NotFound
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.selectors import labels


async def test_three_lines_with_only_a_list_make_a_resource_that_can_be_read(tmp_path: Path) -> None:
    class Planets:
        async def list(self, namespace: str) -> list[Json]:
            return [{"metadata": {"name": name}} for name in ("mars", "venus")]

    class ClusterWide(Strategy):
        namespaced = False

    async with served(tmp_path, Planets(), resource=replace(RESOURCE, strategy=ClusterWide())) as planets:
        assert [name_of(planet) for planet in await planets.list()] == ["mars", "venus"]
        mars = await planets.get("mars", namespace="")
        assert mars["kind"] == "Book"
        assert mars["apiVersion"] == "library.example.com/v1"
        assert mars["metadata"]["uid"]
        assert mars["metadata"]["creationTimestamp"]
        with pytest.raises(NotFound):
            await planets.get("pluto", namespace="")


@pytest.mark.parametrize(
    ("functions", "verbs"),
    [
        ("list", "get list watch"),
        ("get", "get"),
        ("get list", "get list watch"),
        ("list create", "create get list watch"),
        ("get update", "get patch update"),
        ("get delete", "delete get"),
        ("list delete", "delete deletecollection get list watch"),
        ("get list create update delete", "create delete deletecollection get list patch update watch"),
    ],
)
async def test_only_verbs_whose_functions_are_given_are_offered(tmp_path: Path, functions: str, verbs: str) -> None:
    author = type("Author", (), {name: getattr(Shelf, name) for name in functions.split()})()
    async with served(tmp_path, author) as books:
        assert verbs_of(books.storage, subresource=False) == verbs.split()


async def test_functions_from_which_nothing_can_be_read_are_refused(tmp_path: Path) -> None:
    class WriteOnly:
        async def create(self, obj: Json) -> None: ...

    with pytest.raises(TypeError, match="WriteOnly needs at least a function `get` or `list`"):
        async with served(tmp_path, WriteOnly()):
            pass


async def test_a_read_sees_every_outside_change_before_it(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        assert await books.list() == []
        shelf.put("emma", "Emma")
        first = await books.get("emma")
        shelf.put("emma", "Emma, revised")
        second = await books.get("emma")
        assert second["spec"]["title"] == "Emma, revised"
        assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
        assert await books.titles("default") == {"emma": "Emma, revised"}
        shelf.drop("emma")
        with pytest.raises(NotFound):
            await books.get("emma")
        assert await books.list() == []


async def test_an_object_that_does_not_change_keeps_its_version_across_restarts(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        first = await books.get("emma")
        assert await books.get("emma") == first
    async with served(tmp_path, shelf) as books:
        assert await books.list() == [first]


async def test_the_generation_goes_up_with_changes_that_are_neither_metadata_nor_status(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        assert (await books.get("emma"))["metadata"]["generation"] == 1
        shelf.put("emma", "Emma, revised")
        assert (await books.get("emma"))["metadata"]["generation"] == 2
        shelf.rows["default", "emma"]["status"] = {"lent": True}
        shelf.rows["default", "emma"]["metadata"]["labels"] = {"a": "b"}
        changed = await books.get("emma")
        assert changed["status"] == {"lent": True}
        assert changed["metadata"]["generation"] == 2


async def test_labels_of_the_author_are_selected_by_and_go_when_the_author_takes_them_back(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma", labels={"lent": "yes"})
    shelf.put("dracula", "Dracula")
    lent = labels.parse("lent=yes")
    async with served(tmp_path, shelf) as books:
        assert [name_of(found) for found in await books.list(label_selector=lent)] == ["emma"]
        shelf.put("emma", "Emma")
        assert await books.list(label_selector=lent) == []


async def test_an_object_with_another_uid_is_another_object(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma", uid="1")
    async with served(tmp_path, shelf) as books:
        watcher = await books.watch(send_initial_events=False)
        first = await books.get("emma")
        shelf.put("emma", "Emma", uid="2")
        second = await books.get("emma")
        assert (first["metadata"]["uid"], second["metadata"]["uid"]) == ("1", "2")
        types = [(await anext(watcher)).type.value for _ in range(3)]
        assert types == ["ADDED", "DELETED", "ADDED"]


async def test_pages_continue_at_the_state_of_the_first_one(tmp_path: Path) -> None:
    shelf = Shelf()
    for name in ("a", "b", "c"):
        shelf.put(name, name)
    async with served(tmp_path, shelf) as books:
        first = await books.storage.list(context("default"), ListOptions(limit=2))
        shelf.drop("c")
        asked = len(shelf.calls)
        rest = await books.storage.list(context("default"), ListOptions(limit=2, continue_token=first.continue_token))
        assert [name_of(stored.parse()) for stored in rest.objects] == ["c"]
        assert len(shelf.calls) == asked


async def test_an_author_who_ignores_the_namespace_is_understood(tmp_path: Path) -> None:
    class Careless(ReadOnlyShelf):
        async def list(self, namespace: str) -> list[Json]:
            return list(self.rows.values())

    shelf = Careless()
    shelf.put("emma", "Emma")
    shelf.put("dracula", "Dracula", namespace="night")
    async with served(tmp_path, shelf) as books:
        assert await books.titles("night") == {"dracula": "Dracula"}
        assert await books.titles() == {"emma": "Emma", "dracula": "Dracula"}
        assert await books.titles("default") == {"emma": "Emma"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"metadata": {}}, "answered an object without metadata.name"),
        ({"metadata": {"name": "a"}}, 'answered the object "a" without metadata.namespace'),
        ({"metadata": {"name": 42, "namespace": "c"}}, "answered an object whose metadata.name is not a string: 42"),
        ("a", "answered a value that is not an object: str"),
        ({"metadata": {"name": "a/b", "namespace": "c"}}, 'answered the object "a/b": Name parameter invalid'),
        ({"metadata": {"name": "a", "namespace": "c"}, "spec": {1, 2}}, "Type is not JSON serializable: set"),
    ],
)
async def test_an_answer_that_is_no_object_is_an_error_that_names_the_function(
    tmp_path: Path, answer: Any, why: str
) -> None:
    class Confused:
        async def list(self, namespace: str) -> list[Any]:
            return [answer]

    async with served(tmp_path, Confused()) as books:
        with pytest.raises(InternalError) as raised:
            await books.list()
        assert "Confused.list of books.library.example.com" in raised.value.message
        assert why in raised.value.message


async def test_an_answer_about_another_object_is_an_error(tmp_path: Path) -> None:
    class Confused(Shelf):
        async def get(self, name: str, namespace: str) -> Json:
            return book("dracula")

    async with served(tmp_path, Confused()) as books:
        with pytest.raises(InternalError, match='answered "default/dracula" instead of "default/emma"'):
            await books.get("emma")


async def test_what_the_author_refuses_reaches_the_client_and_other_errors_are_internal(tmp_path: Path) -> None:
    class Closed(Shelf):
        async def get(self, name: str, namespace: str) -> Json:
            raise Forbidden.of(BOOKS, name, "it is Sunday")

        async def list(self, namespace: str) -> list[Json]:
            raise ConnectionError("no route to the library")

    async with served(tmp_path, Closed()) as books:
        with pytest.raises(Forbidden, match="it is Sunday"):
            await books.get("emma")
        with pytest.raises(InternalError, match="Internal error occurred: no route to the library"):
            await books.list()


async def test_a_failure_that_goes_on_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Closed(Shelf):
        why = "no route to the library"

        async def list(self, namespace: str) -> list[Json]:
            raise ConnectionError(self.why)

    shelf = Closed()
    async with served(tmp_path, shelf) as books:
        for why in ("no route to the library", "no route to the library", "the library burns"):
            shelf.why = why
            with pytest.raises(InternalError):
                await books.list()
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 2


async def test_something_of_the_authors_that_was_cancelled_is_an_error_of_the_author(tmp_path: Path) -> None:
    class Nervous(Shelf):
        async def get(self, name: str, namespace: str) -> Json:
            given_up = asyncio.create_task(asyncio.sleep(0))
            given_up.cancel()
            await given_up
            return book(name)

    async with served(tmp_path, Nervous()) as books:
        with pytest.raises(InternalError, match="CancelledError"):
            await books.get("emma")


async def test_defaults_are_filled_in_as_for_objects_that_clients_send(tmp_path: Path) -> None:
    def on_read(obj: Json) -> None:
        obj["spec"].setdefault("pages", 100)

    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf, on_read=on_read) as books:
        found = await books.get("emma")
        assert found["spec"] == {"title": "Emma", "pages": 100}
        assert await books.list() == [found]
        assert "pages" not in shelf.rows["default", "emma"]["spec"]


async def test_reads_at_the_same_time_share_questions(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    async with served(tmp_path, shelf) as books:
        await asyncio.gather(*(books.list() for _ in range(20)))
        assert 1 <= len(shelf.calls) <= 2


async def test_ten_thousand_objects_do_not_hold_the_loop(tmp_path: Path) -> None:
    shelf = ReadOnlyShelf()
    for number in range(10_000):
        shelf.put(f"book-{number}", "x" * 100)
    async with served(tmp_path, shelf) as books:
        held = [await _longest_hold(books.list(limit=1))]
        shelf.put("book-7", "changed")
        held.append(await _longest_hold(books.list(limit=1)))
        assert (await books.get("book-7"))["spec"]["title"] == "changed"
    assert max(held) < 0.3 * slowness(pieces=20), held  # all at once, it would be more than half a second


async def _longest_hold(work: Coroutine[Any, Any, object]) -> float:
    """In seconds of this thread: what other programs and the garbage of other tests take does not count."""
    longest, task = 0.0, asyncio.ensure_future(work)
    gc.disable()
    try:
        while not task.done():
            before = thread_time()
            await asyncio.sleep(0)
            longest = max(longest, thread_time() - before)
    finally:
        gc.enable()
    await task
    return longest
