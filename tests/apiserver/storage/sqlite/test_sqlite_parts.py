"""The small parts of the embedded store."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE
from store_clock import ManualClock
from store_reading import next_events

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.interface import Entry, Event
from pilothouse.apiserver.storage.sqlite.history import SqliteKeyRange
from pilothouse.apiserver.storage.sqlite.maintenance import StoreHealth
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.apiserver.storage.watching import EventWindow
from pilothouse.apiserver.tallies import REGISTRY

JUMPS = [3600.0, -3600.0, 10 * 365 * 86400.0, -10 * 365 * 86400.0]

_text = st.text(alphabet=st.sampled_from("a/\0\ud7ff\ue000\uffff\U0010ffff"), max_size=4)


@given(prefix=_text, after=_text, key=_text)
def test_a_range_holds_the_keys_with_its_prefix_behind_a_key(prefix: str, after: str, key: str) -> None:
    keys = SqliteKeyRange.under(prefix, after=after)
    assert (key in keys) == (key.startswith(prefix) and (not after or key > after))
    (keys.end or "").encode()  # the file can be asked for it


def _event(revision: int, size: int = 1) -> Event:
    return Event(revision, "/a", Entry("/a", b"x" * size, revision, revision), None)


def test_a_window_keeps_the_newest_events_within_its_bounds() -> None:
    window = EventWindow(10, max_events=100)
    for revision in range(11, 1000):
        window.extend([_event(revision)])
        kept = [event.revision for event in window.after(max(10, revision - 50))]
        assert kept == list(range(max(11, revision - 49), revision + 1))
        assert revision <= 110 or not window.covers(revision - 101)


def test_a_window_holds_no_more_bytes_than_it_may() -> None:
    window = EventWindow(0, max_bytes=1000)
    for revision in range(1, 50):
        window.extend([_event(revision, size=400)])
        assert not window.covers(revision - 3) or revision < 3
        assert window.covers(revision)


def test_a_window_survives_an_event_that_is_larger_than_itself() -> None:
    window = EventWindow(0, max_bytes=1000)
    window.extend([_event(1), _event(2, size=5000)])
    assert not window.covers(1)
    assert window.covers(2)
    window.extend([_event(3)])
    assert window.after(2) == [_event(3)]


async def test_a_commit_that_hangs_makes_the_store_unhealthy() -> None:
    clock = ManualClock()

    async def probe() -> None:
        pytest.fail("the writer is busy: a probe would only queue behind it")

    health = StoreHealth(clock, probe)
    health.commit_started()
    await health.check()
    clock.advance(11)
    with pytest.raises(Unavailable, match="running for 11 s"):
        await health.check()
    health.commit_succeeded()
    await health.check()


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_wall_clock_that_jumps_changes_nothing_in_the_health_of_the_store(seconds: float) -> None:
    clock, probes = ManualClock(), []

    async def probe() -> None:
        probes.append(clock.now())

    health = StoreHealth(clock, probe)
    health.commit_started()
    clock.jump(seconds)
    await health.check()
    health.commit_failed(OSError("no room"))
    clock.jump(-seconds)
    clock.advance(1)
    await health.check()
    assert len(probes) == 1


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_wall_clock_that_jumps_neither_ends_nor_prolongs_the_life_of_a_key(
    tmp_path: Path, seconds: float
) -> None:
    clock = ManualClock()
    store = await SqliteStore.open(tmp_path, clock=clock, compaction_interval=0)
    await clock.until_asleep(1)
    early = await store.create("/registry/early", b"", ttl=100)
    clock.jump(seconds)
    late = await store.create("/registry/late", b"", ttl=100)
    clock.advance(99)
    await clock.until_asleep(1)
    assert (await store.list("/registry/")).entries == [early, late]
    watch = store.watch("/registry/", after=late.modified)
    clock.advance(2)
    assert {event.key for event in await next_events(watch, 2)} == {early.key, late.key}
    await store.close()


async def test_a_commit_that_failed_makes_the_store_unhealthy_until_a_probe_succeeds() -> None:
    clock, probes = ManualClock(), []

    async def probe() -> None:
        probes.append(clock.now())
        if len(probes) == 1:
            raise Unavailable("still no room")

    health = StoreHealth(clock, probe)
    health.commit_started()
    clock.advance(5)
    health.commit_failed(OSError("no room"))
    with pytest.raises(Unavailable, match="no room"):
        await health.check()
    assert probes == [], "it has just failed"
    clock.advance(1)
    with pytest.raises(Unavailable, match="still no room"):
        await health.check()
    with pytest.raises(Unavailable, match="still no room"):
        await health.check()
    assert len(probes) == 1, "not more than one a second"
    clock.advance(60)
    await health.check()
    await health.check()
    assert len(probes) == 2, "who is well is not probed"


async def test_a_commit_that_succeeds_makes_a_sick_store_well() -> None:
    health = StoreHealth(clock := ManualClock(), lambda: pytest.fail("nobody asked"))
    health.commit_started()
    health.commit_failed(OSError("no room"))
    health.commit_started()
    health.commit_succeeded()
    clock.advance(60)
    await health.check()


async def test_a_key_that_no_file_can_hold_fails_alone(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    outcomes = await asyncio.gather(
        store.create("/registry/\ud800", b""), store.create("/registry/a", b""), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [UnicodeEncodeError, Entry]
    await store.close()


async def test_a_closed_store_leaves_no_thread_and_no_task(tmp_path: Path) -> None:
    others = set(threading.enumerate())
    store = await SqliteStore.open(tmp_path)
    await store.create("/registry/a", b"")
    mine = {thread for thread in threading.enumerate() if thread.name.startswith("store-")} - others
    await store.close()
    for thread in mine:
        thread.join(PATIENCE)
    assert len(mine) == 2
    assert not any(thread.is_alive() for thread in mine)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_metrics_show_the_size_on_disk_and_what_commits_carried(tmp_path: Path) -> None:
    label = {"storage_cluster_id": "embedded"}
    before = REGISTRY.get_sample_value("pilothouse_storage_commit_writes_sum") or 0
    store = await SqliteStore.open(tmp_path)
    await asyncio.gather(*(store.create(f"/registry/{i}", b"x" * 1000) for i in range(100)))
    assert (REGISTRY.get_sample_value("apiserver_storage_size_bytes", label) or 0) > 100_000
    assert REGISTRY.get_sample_value("pilothouse_storage_commit_writes_sum") == before + 100
    await store.close()
    assert REGISTRY.get_sample_value("apiserver_storage_size_bytes", label) is None
