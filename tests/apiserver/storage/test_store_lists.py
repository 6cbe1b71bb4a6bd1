"""Lists: ranges, order, pages, older revisions."""

from __future__ import annotations

import pytest
from store_reading import all_pages

from pilothouse.apiserver.storage.errors import Compacted, FutureRevision
from pilothouse.apiserver.storage.interface import Entry, Page, Store

# In the order of their UTF-8 bytes, which is not the order of UTF-16.
KEYS = [f"/registry/pods/{name}" for name in ("", "A", "a", "a/b", "a0", "é", "\ud7ff", "\uffff", "\U00010000")]


async def _create(store: Store, *keys: str) -> list[Entry]:
    return [await store.create(key, key.encode()) for key in keys]


async def test_a_list_has_the_keys_with_the_prefix_in_the_order_of_their_bytes(store: Store) -> None:
    entries = await _create(store, *reversed(KEYS))
    await _create(store, "/registry/pod", "/registry/pods", "/registry/pods0", "/registry/podsecurity/a")
    page = await store.list("/registry/pods/")
    assert page == Page(entries[::-1], await store.current_revision())


async def test_a_list_of_nothing_is_empty_at_the_current_revision(store: Store) -> None:
    entry = await store.create("/registry/a", b"")
    assert await store.list("/registry/pods/") == Page([], entry.modified)


@pytest.mark.parametrize("limit", [1, 2, len(KEYS) - 1, len(KEYS), len(KEYS) + 1])
async def test_pages_add_up_to_the_list_and_count_what_follows(store: Store, limit: int) -> None:
    entries = await _create(store, *KEYS)
    await _create(store, "/registry/zebras/a")
    assert await all_pages(store, "/registry/pods/", at=None, limit=limit) == entries


async def test_a_page_starts_behind_a_key_that_need_not_exist(store: Store) -> None:
    entries = await _create(store, "/registry/a", "/registry/c", "/registry/d")
    assert (await store.list("/registry/", after="/registry/b")).entries == entries[1:]
    assert (await store.list("/registry/", after="/registry/c")).entries == entries[2:]
    assert (await store.list("/registry/", after="/a", limit=1)) == Page(entries[:1], entries[-1].modified, 2)
    assert (await store.list("/registry/", after="/registry/d")).entries == []
    assert (await store.list("/registry/", after="/zoo", limit=1)) == Page([], entries[-1].modified)


async def test_a_list_at_an_older_revision_shows_what_was_then(store: Store) -> None:
    a, b, c = await _create(store, "/registry/a", "/registry/b", "/registry/c")
    await store.update("/registry/a", b"new", expected=a.modified)
    await store.delete("/registry/b", expected=b.modified)
    await store.create("/registry/aa", b"")
    assert await store.list("/registry/", at=c.modified) == Page([a, b, c], c.modified)
    assert await store.list("/registry/", at=b.modified) == Page([a, b], b.modified)
    assert await store.list("/registry/", at=c.modified, limit=1) == Page([a], c.modified, 2)
    assert await store.list("/registry/", at=c.modified, after="/registry/a", limit=1) == Page([b], c.modified, 1)


async def test_a_page_at_an_older_revision_is_filled_however_many_keys_are_newer(store: Store) -> None:
    old = await _create(store, "/registry/m", "/registry/n", "/registry/o")
    await _create(store, *(f"/registry/a{i}" for i in range(5)))
    await store.delete("/registry/n", expected=old[1].modified)
    for limit in (1, 2, 3):
        assert await all_pages(store, "/registry/", at=old[-1].modified, limit=limit) == old


async def test_a_list_that_continues_is_not_disturbed_by_writes(store: Store) -> None:
    entries = await _create(store, *KEYS)
    first = await store.list("/registry/pods/", limit=3)
    for entry in entries[2:5]:
        await store.delete(entry.key, expected=entry.modified)
    await _create(store, "/registry/pods/a1", "/registry/pods/z")
    rest = await store.list("/registry/pods/", at=first.revision, after=first.entries[-1].key)
    assert first.entries + rest.entries == entries


async def test_a_list_at_the_current_revision_is_the_current_list(store: Store) -> None:
    await _create(store, *KEYS)
    revision = await store.current_revision()
    assert await store.list("/registry/", at=revision, limit=2) == await store.list("/registry/", limit=2)


async def test_a_list_at_a_revision_to_come_is_refused(store: Store) -> None:
    current = (await store.create("/registry/a", b"")).modified
    with pytest.raises(FutureRevision) as refusal:
        await store.list("/registry/", at=current + 1)
    assert (refusal.value.requested, refusal.value.current) == (current + 1, current)


async def test_a_list_before_the_compacted_revision_is_refused(store: Store) -> None:
    a, b, c = await _create(store, "/registry/a", "/registry/b", "/registry/c")
    await store.compact(b.modified)
    with pytest.raises(Compacted) as refusal:
        await store.list("/registry/", at=a.modified)
    assert refusal.value.requested == a.modified
    assert await store.list("/registry/", at=b.modified) == Page([a, b], b.modified)
    assert await store.list("/registry/") == Page([a, b, c], c.modified)


async def test_count_counts_the_keys_with_the_prefix(store: Store) -> None:
    entries = await _create(store, *KEYS)
    await _create(store, "/registry/pods", "/registry/pods0")
    assert await store.count("/registry/pods/") == len(KEYS)
    await store.delete(entries[0].key, expected=entries[0].modified)
    assert await store.count("/registry/pods/") == len(KEYS) - 1
    assert await store.count("/registry/nothing/") == 0
