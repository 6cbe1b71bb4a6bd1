"""Writing objects that live in an author's functions: the author first, then the mirror."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from shelves import BOOKS, Shelf, book, context, retitled, served

from pilothouse.apiserver.registry.operations import unchecked, unchecked_update
from pilothouse.apiserver.registry.options import DeleteOptions, ListOptions, Preconditions, WriteOptions
from pilothouse.errors import AlreadyExists, Conflict, Forbidden, InternalError, MethodNotAllowed, NotFound
from pilothouse.machinery.objects import Json, name_of


async def test_objects_are_created_updated_and_deleted_by_the_author(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        created = await books.create(book("emma"))
        assert shelf.rows["default", "emma"]["spec"] == {"title": "Emma"}
        updated = await books.change("emma", retitled("Persuasion"))
        assert shelf.rows["default", "emma"]["spec"] == {"title": "Persuasion"}
        assert updated["metadata"]["uid"] == created["metadata"]["uid"]
        assert updated["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]
        assert await books.get("emma") == updated
        await books.delete("emma")
        assert shelf.rows == {}
        with pytest.raises(NotFound):
            await books.get("emma")
    writes = [call for call in shelf.calls if not call.startswith(("get", "list"))]
    assert writes == ["create emma", "update emma", "delete emma"]


async def test_what_the_author_answers_is_what_is_stored(tmp_path: Path) -> None:
    class Librarian(Shelf):
        async def create(self, obj: Json) -> Json:
            obj["spec"]["shelf"] = 7
            await super().create(obj)
            return {"metadata": {"name": name_of(obj), "namespace": "default"}, "spec": obj["spec"]}

        update = create

    async with served(tmp_path, Librarian()) as books:
        created = await books.create(book("emma", labels={"a": "b"}))
        assert created["spec"] == {"title": "Emma", "shelf": 7}
        assert created["metadata"]["labels"] == {"a": "b"}
        assert await books.get("emma") == created


async def test_an_object_that_the_author_changes_while_it_is_told_is_stored_as_it_was_sent(tmp_path: Path) -> None:
    class Careless(Shelf):
        async def create(self, obj: Json) -> None:
            self._keep(obj)
            obj.clear()

    async with served(tmp_path, Careless()) as books:
        assert (await books.create(book("emma")))["spec"] == {"title": "Emma"}


async def test_an_update_from_an_old_version_is_a_conflict_and_the_author_is_not_asked(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        old = await books.get("emma")
        shelf.put("emma", "changed outside")
        with pytest.raises(Conflict, match="the object has been modified"):
            await books.change("emma", retitled("mine"), version=old["metadata"]["resourceVersion"])
        assert "update emma" not in shelf.calls
        await books.change("emma", lambda obj: obj["spec"].update(pages=1))
        assert shelf.rows["default", "emma"]["spec"] == {"title": "changed outside", "pages": 1}


async def test_what_appeared_outside_exists_and_what_went_outside_does_not(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        await books.create(book("emma"))
        shelf.put("dracula", "Dracula")
        shelf.drop("emma")
        with pytest.raises(AlreadyExists):
            await books.create(book("dracula"))
        with pytest.raises(NotFound):
            await books.delete("emma")
        assert (await books.create(book("emma")))["metadata"]["uid"]


@pytest.mark.parametrize("function", ["create", "update", "delete"])
async def test_what_the_author_refuses_is_not_written(tmp_path: Path, function: str) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")

    async def refuse(*_: object) -> None:
        raise Forbidden.of(BOOKS, "emma", "it is Sunday")

    setattr(shelf, function, refuse)
    async with served(tmp_path, shelf) as books:
        before, revision = await books.list(), await books.store.current_revision()
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: books.create(book("dracula")),
            "update": lambda: books.change("emma", retitled("mine")),
            "delete": lambda: books.delete("emma"),
        }
        with pytest.raises(Forbidden, match="it is Sunday"):
            await writes[function]()
        assert await books.list() == before
        assert await books.store.current_revision() == revision


async def test_other_errors_of_the_author_are_internal_errors_with_their_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Shelf):
        async def create(self, obj: Json) -> None:
            raise ValueError("the table is locked")

    async with served(tmp_path, Broken()) as books:
        with pytest.raises(InternalError, match="Internal error occurred: the table is locked"):
            await books.create(book("emma"))
        assert await books.list() == []
    assert "Broken.create of books.library.example.com failed" in caplog.text


async def test_a_write_that_the_mirror_missed_is_there_after_the_next_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:

        async def fail(*_: object, **__: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(books.store, "create", fail)
            with pytest.raises(OSError, match="disk full"):
                await books.create(book("emma"))
        assert await books.titles() == {"emma": "Emma"}


async def test_a_dry_run_tells_the_author_nothing(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("dracula", "Dracula")
    async with served(tmp_path, shelf) as books:
        assert name_of(await books.create(book("emma"), dry_run=True)) == "emma"
        with pytest.raises(AlreadyExists):
            await books.create(book("dracula"), dry_run=True)
        await books.delete("dracula", DeleteOptions(dry_run=True))
        assert await books.titles() == {"dracula": "Dracula"}


async def test_a_name_is_made_where_none_is_given(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        nameless = {"metadata": {"generateName": "novel-", "namespace": "default"}, "spec": {"title": "Emma"}}
        created = await books.create(nameless)
        assert name_of(created).startswith("novel-")
        assert ("default", name_of(created)) in shelf.rows


async def test_a_delete_for_another_uid_is_a_conflict(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        with pytest.raises(Conflict):
            await books.delete("emma", DeleteOptions(preconditions=Preconditions(uid="another")))
        assert "delete emma" not in shelf.calls


async def test_finalizers_are_the_mirrors_affair_until_the_last_one_goes(tmp_path: Path) -> None:
    shelf = Shelf()
    async with served(tmp_path, shelf) as books:
        await books.create(book("emma", finalizers=["example.com/hold"]))
        await books.delete("emma")
        marked = await books.get("emma")
        assert marked["metadata"]["deletionTimestamp"]
        assert shelf.rows.keys() == {("default", "emma")}
        assert not {"update emma", "delete emma"} & set(shelf.calls)
        await books.change("emma", lambda obj: obj["metadata"].pop("finalizers"))
        assert "update emma" not in shelf.calls
        assert shelf.rows == {}
        with pytest.raises(NotFound):
            await books.get("emma")


async def test_an_author_who_keeps_all_metadata_is_told_of_changes_to_it(tmp_path: Path) -> None:
    class Archive(Shelf):
        keeps = ("uid", "creationTimestamp", "labels", "finalizers", "managedFields")

    shelf = Archive()
    async with served(tmp_path, shelf) as books:
        created = await books.create(book("emma", labels={"a": "1"}))
        labelled = await books.change("emma", lambda obj: obj["metadata"]["labels"].update(a="2"))
        assert shelf.rows["default", "emma"]["metadata"]["labels"] == {"a": "2"}
        assert await books.get("emma") == labelled
        await books.change("emma", lambda obj: obj["metadata"].pop("labels"))
        bare = await books.get("emma")
        assert "labels" not in bare["metadata"]
        assert bare["metadata"]["uid"] == created["metadata"]["uid"]


async def test_labels_that_the_author_does_not_keep_are_kept_in_the_mirror(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with served(tmp_path, shelf) as books:
        await books.change("emma", lambda obj: obj["metadata"].update(labels={"a": "1"}))
        assert "update emma" not in shelf.calls
    shelf.put("emma", "Persuasion")
    async with served(tmp_path, shelf) as books:
        found = await books.get("emma")
        assert (found["metadata"]["labels"], found["spec"]["title"]) == ({"a": "1"}, "Persuasion")


async def test_an_update_that_would_create_needs_a_function_that_creates(tmp_path: Path) -> None:
    author = type("Author", (Shelf,), {"create": None})()

    async def make(_: Json | None) -> Json:
        return book("emma")

    async with served(tmp_path, author) as books:
        update = unchecked_update(make, WriteOptions())
        forced = type(update)(update.make, update.options, unchecked, unchecked, force_allow_create=True)
        with pytest.raises(MethodNotAllowed):
            await books.storage.update(context("default"), "emma", forced)


async def test_a_collection_is_deleted_one_by_one(tmp_path: Path) -> None:
    shelf = Shelf()
    for name in ("a", "b"):
        shelf.put(name, name)
    shelf.put("c", "c", namespace="other")
    async with served(tmp_path, shelf) as books:
        await books.storage.delete_collection(
            context("default"), options=DeleteOptions(), selection=ListOptions(), validate=unchecked
        )
        assert await books.titles() == {"c": "c"}
        assert shelf.rows.keys() == {("other", "c")}
