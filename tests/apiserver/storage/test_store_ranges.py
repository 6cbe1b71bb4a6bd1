"""A list has nothing but keys of its range, whatever numbers it is asked with."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storage_backends import Backend
from store_model import Model

from pilothouse.apiserver.storage.errors import Compacted, FutureRevision
from pilothouse.apiserver.storage.interface import Entry, Store

KEYS = [f"/registry/secrets/{name}" for name in ("ateam/a", "ateam/b", "ateam/c", "bteam/a", "zteam/a", "zteam/b")]
PREFIXES = ["", "/", "/registry/secrets/", *(f"/registry/secrets/{team}/" for team in ("ateam", "bteam", "c", "zteam"))]
INT64 = st.integers(-(2**63), 2**63 - 1)

prefixes = st.one_of(st.sampled_from(PREFIXES), st.sampled_from(KEYS))
afters = st.one_of(st.just(""), st.sampled_from([*KEYS, *PREFIXES]), st.text(max_size=5))
limits = st.one_of(st.integers(-8, 8), INT64)


async def filled(store: Store) -> Model:
    """With all keys there at some revision, and some of them gone now."""
    model = Model(await store.current_revision())
    for key in KEYS:
        model.create(key, b"value")
        await store.create(key, b"value")
    for key in KEYS[1::3]:
        revision = model.current[key].modified
        model.delete(key, revision)
        await store.delete(key, expected=revision)
    return model


def wanted(entries: list[Entry], after: str, limit: int) -> list[Entry]:
    behind = [entry for entry in entries if entry.key > after]
    return behind[:limit] if limit > 0 else behind


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=st.lists(st.tuples(prefixes, afters, limits), min_size=20, max_size=20))
async def test_a_list_shows_its_range_and_nothing_else(
    backend: Backend, tmp_path: Path, asked: list[tuple[str, str, int]]
) -> None:
    store = await type(backend).create(tmp_path).open()
    model = await filled(store)
    for prefix, after, limit in asked:
        for at in (None, *model.states):
            everything = wanted(model.listed(prefix, at or model.revision), after, 0)
            page = await store.list(prefix, at=at, after=after, limit=limit)
            assert page.entries == wanted(everything, after, limit)
            assert page.remaining == len(everything) - len(page.entries)
    await store.close()


@pytest.mark.parametrize("prefix", ["/registry/secrets/ateam/", "/registry/secrets/ateam/b"])
@pytest.mark.parametrize("at", [-(2**63), -1, 0, 2**63 - 1])
async def test_a_list_at_a_revision_that_is_none_is_refused_or_stays_in_its_range(
    store: Store, prefix: str, at: int
) -> None:
    await filled(store)
    for limit in (-(2**63), -3, -1, 0, 1, 2**63 - 1):
        try:
            page = await store.list(prefix, at=at, limit=limit)
        except (Compacted, FutureRevision):
            continue
        assert all(entry.key.startswith(prefix) for entry in page.entries)
