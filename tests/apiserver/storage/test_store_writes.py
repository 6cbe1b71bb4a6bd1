"""What create, update, delete and get answer."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Store


async def test_an_empty_store_has_a_revision_that_is_not_zero(store: Store) -> None:
    """Clients take resource version 0 to mean any."""
    assert await store.current_revision() > 0


async def test_a_created_entry_carries_the_revision_of_its_write(store: Store) -> None:
    before = await store.current_revision()
    entry = await store.create("/registry/a", b"one")
    assert entry == Entry("/registry/a", b"one", created=before + 1, modified=before + 1)
    assert await store.get("/registry/a") == entry
    assert await store.current_revision() == entry.modified


async def test_an_update_keeps_the_created_revision(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    updated = await store.update("/registry/a", b"two", expected=created.modified)
    assert updated == Entry("/registry/a", b"two", created=created.created, modified=created.modified + 1)
    assert await store.get("/registry/a") == updated


async def test_a_delete_answers_the_last_value_at_its_own_revision(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    deleted = await store.delete("/registry/a", expected=created.modified)
    assert deleted == Entry("/registry/a", b"one", created=created.created, modified=created.modified + 1)
    assert await store.get("/registry/a") is None
    assert await store.current_revision() == deleted.modified


async def test_a_key_created_again_is_a_new_one(store: Store) -> None:
    first = await store.create("/registry/a", b"one")
    gone = await store.delete("/registry/a", expected=first.modified)
    again = await store.create("/registry/a", b"two")
    assert again.created == again.modified > gone.modified


async def test_get_of_a_key_that_never_was_answers_none(store: Store) -> None:
    await store.create("/registry/ab", b"")
    assert await store.get("/registry/a") is None


@pytest.mark.parametrize("value", [b"", b"\x00\xff\x00", b"x" * 1_000_000], ids=["empty", "binary", "large"])
async def test_any_bytes_come_back_as_they_went_in(store: Store, value: bytes) -> None:
    await store.create("/registry/a", value)
    entry = await store.get("/registry/a")
    assert entry is not None
    assert entry.value == value
    assert (await store.list("/registry/")).entries == [entry]


async def test_creating_a_key_that_exists_is_refused_and_changes_nothing(store: Store) -> None:
    entry = await store.create("/registry/a", b"one")
    with pytest.raises(KeyExists):
        await store.create("/registry/a", b"two")
    assert await store.get("/registry/a") == entry
    assert await store.current_revision() == entry.modified


async def test_updating_a_missing_key_is_refused(store: Store) -> None:
    with pytest.raises(KeyNotFound):
        await store.update("/registry/a", b"two", expected=1)
    assert await store.get("/registry/a") is None


async def test_deleting_a_missing_key_is_refused(store: Store) -> None:
    with pytest.raises(KeyNotFound):
        await store.delete("/registry/a", expected=1)


@pytest.mark.parametrize("distance", [-1, 1])
async def test_updating_at_another_revision_is_refused_and_changes_nothing(store: Store, distance: int) -> None:
    await store.create("/registry/other", b"")
    entry = await store.create("/registry/a", b"one")
    await store.create("/registry/another", b"")
    with pytest.raises(RevisionConflict):
        await store.update("/registry/a", b"two", expected=entry.modified + distance)
    assert await store.get("/registry/a") == entry


async def test_deleting_at_a_stale_revision_is_refused_and_changes_nothing(store: Store) -> None:
    old = await store.create("/registry/a", b"one")
    new = await store.update("/registry/a", b"two", expected=old.modified)
    with pytest.raises(RevisionConflict):
        await store.delete("/registry/a", expected=old.modified)
    assert await store.get("/registry/a") == new


async def test_a_revision_of_a_former_life_of_the_key_is_stale(store: Store) -> None:
    old = await store.create("/registry/a", b"one")
    await store.delete("/registry/a", expected=old.modified)
    await store.create("/registry/a", b"two")
    with pytest.raises(RevisionConflict):
        await store.update("/registry/a", b"three", expected=old.modified)


async def test_ping_of_a_working_store_returns(store: Store) -> None:
    await store.ping()
