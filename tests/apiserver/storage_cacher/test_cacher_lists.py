from __future__ import annotations

import asyncio

import pytest
from cacher_harness import PREFIX, ManualClock, key, labelled, put, remove, running, settle, text_of
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.selection import CachedPage
from pilothouse.apiserver.storage.cacher.window import WindowLimits
from pilothouse.apiserver.storage.errors import CacheNotReady, Compacted, TooLargeRevision


def keys(page: CachedPage) -> list[str]:
    return [obj.key.removeprefix(PREFIX) for obj in page.objects]


async def fill(store: MemoryStore) -> None:
    for name, namespace, colour in [("b", "y", "red"), ("a", "y", "blue"), ("c", "x", "red"), ("a", "y0", "red")]:
        await put(store, name, namespace, colour=colour)


async def test_a_list_is_in_key_order_at_the_newest_revision(store: MemoryStore, cacher: Cacher) -> None:
    await fill(store)
    page = await cacher.list(PREFIX)
    assert keys(page) == ["x/c", "y/a", "y/b", "y0/a"]
    assert (page.revision, page.remaining) == (4, 0)


async def test_a_namespace_is_listed_without_its_neighbours(store: MemoryStore, cacher: Cacher) -> None:
    await fill(store)
    assert keys(await cacher.list(f"{PREFIX}y/")) == ["y/a", "y/b"]
    assert keys(await cacher.list(f"{PREFIX}none/")) == []


async def test_a_key_is_listed_alone(store: MemoryStore, cacher: Cacher) -> None:
    for name in ("a", "ab", "a.b"):
        await put(store, name)
    assert keys(await cacher.list(key("a"))) == ["ns/a"]
    assert keys(await cacher.list(key("z"))) == []


async def test_pages_follow_each_other_and_say_how_much_is_left(store: MemoryStore, cacher: Cacher) -> None:
    for name in "abcde":
        await put(store, name)
    first = await cacher.list(PREFIX, limit=2)
    assert (keys(first), first.remaining) == (["ns/a", "ns/b"], 3)
    second = await cacher.list(PREFIX, after=first.objects[-1].key, limit=2)
    assert (keys(second), second.remaining) == (["ns/c", "ns/d"], 1)
    third = await cacher.list(PREFIX, after=second.objects[-1].key, limit=2)
    assert (keys(third), third.remaining) == (["ns/e"], 0)


async def test_a_filtered_page_counts_what_lies_behind_it_matching_or_not(store: MemoryStore, cacher: Cacher) -> None:
    for name in "abcdef":
        await put(store, name, odd="yes" if name in "ace" else "no")
    page = await cacher.list(PREFIX, limit=2, matches=labelled("odd", "yes"))
    assert (keys(page), page.remaining) == (["ns/a", "ns/c"], 3)
    rest = await cacher.list(PREFIX, limit=2, after=key("c"), matches=labelled("odd", "yes"))
    assert (keys(rest), rest.remaining) == (["ns/e"], 0)


async def test_a_list_sees_a_write_that_the_watch_has_not_delivered(store: MemoryStore, cacher: Cacher) -> None:
    store.hold()
    await put(store, "a")
    listing = asyncio.create_task(cacher.list(PREFIX))
    await settle()
    assert not listing.done()
    store.release()
    assert keys(await listing) == ["ns/a"]


async def test_a_list_reads_the_store_when_it_keeps_silent_about_progress(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    for name in "abcd":
        await put(store, name, odd="yes" if name in "ac" else "no")
    await settle()
    store.answers_progress = False
    store.hold()
    await put(store, "e", odd="yes")
    listing = asyncio.create_task(cacher.list(PREFIX, limit=2, matches=labelled("odd", "yes")))
    single = asyncio.create_task(cacher.list(key("e")))
    missing = asyncio.create_task(cacher.list(key("aa")))
    await clock.advance(0.31)
    page = await listing
    assert (keys(page), page.revision, page.remaining) == (["ns/a", "ns/c"], 5, 2)
    assert keys(await single) == ["ns/e"]
    assert keys(await missing) == []


async def test_any_revision_is_good_enough_for_a_list_at_zero(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await settle()
    store.hold()
    await put(store, "b")
    page = await cacher.list(PREFIX, not_older_than=0)
    assert (keys(page), page.revision) == (["ns/a"], 1)


async def test_a_list_at_a_past_revision_shows_the_past(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a", text="1")
    await put(store, "b", text="1")
    await put(store, "a", text="2")
    await remove(store, "b")
    await put(store, "c", text="1")
    await put(store, "a", text="3")
    await settle()
    store.reads.clear()
    page = await cacher.list(PREFIX, at=3)
    assert [(obj.key, text_of(obj), obj.revision) for obj in page.objects] == [(key("a"), "2", 3), (key("b"), "1", 2)]
    assert page.revision == 3
    assert keys(await cacher.list(PREFIX, at=3, limit=1, after=key("a"))) == ["ns/b"]
    assert keys(await cacher.list(PREFIX, at=1)) == ["ns/a"]
    assert keys(await cacher.list(PREFIX, at=0)) == []
    assert set(store.reads) == {f"{PREFIX}\x7f"}  # whether the store still has that past


async def test_a_list_before_the_window_is_read_from_the_store(store: MemoryStore, clock: ManualClock) -> None:
    await put(store, "a")
    await put(store, "b")
    async with running(store, clock=clock, window=WindowLimits(least=1, most=1)) as cacher:
        await put(store, "c")
        await put(store, "d")
        assert keys(await cacher.list(PREFIX, at=2)) == ["ns/a", "ns/b"]
        assert keys(await cacher.list(PREFIX, at=1)) == ["ns/a"]
        await store.compact(2)
        with pytest.raises(Compacted):
            await cacher.list(PREFIX, at=1)


async def test_the_cache_remembers_no_more_of_the_past_than_the_store(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await put(store, "b")
    assert keys(await cacher.list(PREFIX, at=1)) == ["ns/a"]
    await store.compact(2)
    with pytest.raises(Compacted):
        await cacher.list(PREFIX, at=1)
    assert keys(await cacher.list(PREFIX, at=2)) == ["ns/a", "ns/b"]


async def test_a_list_at_a_revision_that_does_not_come_is_refused(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    listing = [
        asyncio.create_task(cacher.list(PREFIX, at=5)),
        asyncio.create_task(cacher.list(PREFIX, not_older_than=5)),
    ]
    await clock.advance(3.1)
    for task in listing:
        with pytest.raises(TooLargeRevision):
            await task


async def test_a_page_taken_before_a_change_stays_as_it_was(store: MemoryStore, cacher: Cacher) -> None:
    for number in range(1200):
        await put(store, f"n{number:04}", text="old")

    async def rewrite() -> None:
        await put(store, "n1100", text="new")
        await remove(store, "n1150")

    listing = asyncio.create_task(cacher.list(PREFIX, matches=lambda obj: obj.key >= key("n1100")))
    await asyncio.sleep(0)
    await rewrite()
    page = await listing
    assert page.revision == 1200
    assert len(page.objects) == 100
    assert text_of(page.objects[0]) == "old"


async def test_a_list_is_refused_while_the_cache_can_not_be_filled(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    store.unavailable = True
    store.break_watches()
    await settle()
    listing = asyncio.create_task(cacher.list(PREFIX, not_older_than=0))
    await clock.advance(0.9)
    assert not listing.done()
    await clock.advance(0.2)
    with pytest.raises(CacheNotReady, match=r"storage is \(re\)initializing: the store is down") as refused:
        await listing
    assert refused.value.retry_after == 1


async def test_a_list_during_a_short_outage_is_answered(store: MemoryStore, cacher: Cacher, clock: ManualClock) -> None:
    await put(store, "a")
    await settle()
    store.break_watches()
    await settle()
    listing = asyncio.create_task(cacher.list(PREFIX, not_older_than=0))
    await clock.advance(0.2)
    assert keys(await listing) == ["ns/a"]
