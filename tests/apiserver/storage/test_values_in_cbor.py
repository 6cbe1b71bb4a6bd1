"""Objects that are stored in CBOR, on SQLite: seen as JSON, whichever form they are in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.apiserver.storage.cbor import CborStore
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

VALUE = b'{"kind":"Foo","apiVersion":"ex.com/v1","metadata":{"name":"a"},"spec":{"z":1.5,"a":[null,-1]}}'
MARK = b"\xd9\xd9\xf7"


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Store]:
    store = await SqliteStore.open(tmp_path)
    yield store
    await store.close()


async def test_what_is_written_is_cbor_below_and_the_same_json_above(bare: Store) -> None:
    store = CborStore(bare, writes_cbor=True)
    written = await store.create("/foos/a", VALUE)
    stored = await bare.get("/foos/a")
    assert stored is not None
    assert stored.value.startswith(MARK)
    assert written.value == VALUE
    found = await store.get("/foos/a")
    assert found is not None
    assert (found.value, found.stale) == (VALUE, False)


async def test_both_forms_are_read_and_the_one_that_is_not_written_today_is_stale(bare: Store) -> None:
    await CborStore(bare, writes_cbor=True).create("/foos/cbor", VALUE)
    await CborStore(bare, writes_cbor=False).create("/foos/json", VALUE)
    for writes_cbor, stale in ((True, "/foos/json"), (False, "/foos/cbor")):
        page = await CborStore(bare, writes_cbor=writes_cbor).list("/foos/")
        assert [entry.value for entry in page.entries] == [VALUE, VALUE]
        assert [entry.key for entry in page.entries if entry.stale] == [stale]


async def test_a_watch_shows_json_before_and_after(bare: Store) -> None:
    store = CborStore(bare, writes_cbor=True)
    created = await store.create("/foos/a", VALUE)
    changed = VALUE.replace(b"1.5", b"2.5")
    await store.update("/foos/a", changed, expected=created.modified)
    watch = store.watch("/foos/", after=created.modified)
    batch = await anext(aiter(watch))
    await watch.aclose()
    (event,) = batch.events
    assert event.entry is not None
    assert event.previous is not None
    assert (event.entry.value, event.previous.value) == (changed, VALUE)


async def test_a_value_that_is_no_cbor_is_told_by_its_key(bare: Store) -> None:
    await bare.create("/foos/a", MARK + b"\xa1")
    with pytest.raises(Undecodable, match="unable to decode the value of /foos/a: unexpected EOF"):
        await CborStore(bare, writes_cbor=False).get("/foos/a")
