"""A list has nothing but objects of its range, whatever numbers it is asked with: from the cache, and past it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cacher_harness import CODEC, CONFIG_MAPS, PREFIX, key, labelled, put, remove, running
from cacher_memory_store import MemoryStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.storage.cacher.direct_reader import DirectReader
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.selection import ListSelection
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject

OBJECTS = [("a", "ateam"), ("b", "ateam"), ("c", "ateam"), ("a", "bteam"), ("a", "zteam"), ("b", "zteam")]
PREFIXES = [PREFIX, *(f"{PREFIX}{team}/" for team in ("a", "ateam", "bteam", "zteam")), key("b", "ateam")]
INT64 = st.integers(-(2**63), 2**63 - 1)

prefixes = st.sampled_from(PREFIXES)
afters = st.one_of(st.just(""), st.sampled_from([*PREFIXES, *(key(*place) for place in OBJECTS)]), st.text(max_size=5))
limits = st.one_of(st.integers(-8, 8), INT64)
predicates = st.sampled_from([None, labelled("odd", "yes")])


async def filled() -> tuple[MemoryStore, Revision]:
    """All objects at the revision, and some of them gone since."""
    store = MemoryStore()
    for index, (name, namespace) in enumerate(OBJECTS):
        await put(store, name, namespace, odd="yes" if index % 2 else "no")
    revision = store.revision
    for name, namespace in OBJECTS[::3]:
        await remove(store, name, namespace)
    return store, revision


def is_meant(found: str, prefix: str) -> bool:
    return found.startswith(prefix) if prefix.endswith("/") else found == prefix


async def expected(
    store: MemoryStore,
    at: Revision | None,
    prefix: str,
    after: str,
    limit: int,
    matches: Callable[[StoredObject], bool] | None,
) -> list[str]:
    objects = [StoredObject(entry, CODEC) for entry in (await store.list(PREFIX, at=at)).entries]
    keys = [
        obj.key
        for obj in objects
        if is_meant(obj.key, prefix) and obj.key > after and (matches is None or matches(obj))
    ]
    return keys[:limit] if limit > 0 else keys


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(prefixes, afters, limits, predicates)
async def test_a_list_shows_its_range_and_nothing_else(
    prefix: str, after: str, limit: int, matches: Callable[[StoredObject], bool] | None
) -> None:
    store, earlier = await filled()
    direct = DirectReader(store, CODEC, CacheMetrics(CONFIG_MAPS))
    async with running(store) as cacher:
        for at in (None, earlier):
            meant = await expected(store, at, prefix, after, limit, matches)
            cached = await cacher.list(prefix, at=at, after=after, limit=limit, matches=matches)
            assert [obj.key for obj in cached.objects] == meant
            passed = await direct.list(ListSelection(prefix, after, limit, matches), at=at)
            assert [obj.key for obj in passed.objects] == meant


@pytest.mark.parametrize("limit", [-1, -2, -len(OBJECTS), -(2**63)])
async def test_a_negative_limit_is_none(limit: int) -> None:
    store, _ = await filled()
    async with running(store) as cacher:
        page = await cacher.list(f"{PREFIX}ateam/", limit=limit)
    assert [obj.key for obj in page.objects] == [key("b", "ateam"), key("c", "ateam")]
    assert page.remaining == 0
