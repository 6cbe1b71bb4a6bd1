"""How far a watch has come: known on any etcd, whatever was written last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from etcd_backend import connect
from newer_etcd import NewerEtcd
from store_reading import next_batch, next_events

from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.etcd.stream import answers_progress_requests


@pytest.mark.parametrize(
    ("version", "answers"),
    [
        ("3.3.27", False),
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.1", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.6.0", True),
        ("3.6.0-rc.1", True),
        ("4.0.0", True),
        ("not a version", False),
        ("", False),
    ],
)
def test_only_versions_with_both_fixes_are_asked_for_progress(version: str, answers: bool) -> None:
    assert answers_progress_requests(version) is answers


async def test_progress_follows_a_write_by_another_process_outside_of_the_prefix(shared: str) -> None:
    store, other = await EtcdStore.connect([shared], prefix="/registry", compaction_interval=0), await connect(shared)
    watch = store.watch("/registry/pods/", after=await store.current_revision())
    for i in range(10):
        entry = await other.create(f"/elsewhere/{i}", b"")
        await watch.request_progress()
        batch = await next_batch(watch)
        assert (batch.events, batch.revision) == ((), entry.modified)
    await store.close()
    await other.close()


async def test_events_of_others_are_not_told(shared: str) -> None:
    store, other = await EtcdStore.connect([shared], prefix="/registry/", compaction_interval=0), await connect(shared)
    watch = store.watch("/registry/", after=await store.current_revision())
    await other.create("/elsewhere/a", b"")
    await other.create("/registry", b"")
    own = await other.create("/registry/a", b"")
    assert [event.entry for event in await next_events(watch, 1)] == [own]
    await store.close()
    await other.close()


async def test_a_watch_outside_of_what_the_store_follows_is_refused(shared: str) -> None:
    store = await EtcdStore.connect([shared], prefix="/registry", compaction_interval=0)
    with pytest.raises(ValueError, match="/elsewhere/ is outside of /registry/"):
        store.watch("/elsewhere/", after=1)
    await store.close()


async def test_many_questions_at_once_are_all_answered(etcd_store: EtcdStore) -> None:
    current = await etcd_store.current_revision()
    watches = [etcd_store.watch(f"/registry/{i}/", after=current) for i in range(60)]
    entry = await etcd_store.create("/registry/elsewhere", b"")
    await asyncio.gather(*(watch.request_progress() for watch in watches))
    assert {(await next_batch(watch)).revision for watch in watches} == {entry.modified}


async def test_questions_of_many_at_once_do_not_break_the_stream(
    newer: NewerEtcd, caplog: pytest.LogCaptureFixture
) -> None:
    store = await EtcdStore.connect([await newer.start()], prefix="/registry", compaction_interval=0)
    watches = [store.watch(f"/registry/{i}/", after=10) for i in range(60)]
    newer.tell(b"/registry/0/a")
    await next_events(watches[0], 1)
    newer.revision = 20
    await asyncio.gather(*(watch.request_progress() for watch in watches))
    assert {(await next_batch(watch)).revision for watch in watches} == {20}
    assert [each.message for each in caplog.records if each.name.startswith("pilothouse")] == []
    await store.close()


async def test_a_question_is_put_again_until_the_newer_etcd_answers(newer: NewerEtcd) -> None:
    store = await EtcdStore.connect([await newer.start()], prefix="/registry", compaction_interval=0)
    watch = store.watch("/registry/pods/", after=10)
    newer.tell(b"/registry/pods/a")
    await next_events(watch, 1)
    newer.revision, newer.synced = 20, False
    reading = asyncio.ensure_future(next_batch(watch))
    await watch.request_progress()
    await newer.unanswered.wait()
    newer.synced = True
    assert (await reading).revision == 20
    await store.close()


@pytest.fixture
async def newer() -> AsyncIterator[NewerEtcd]:
    etcd = NewerEtcd()
    yield etcd
    await etcd.stop()


async def test_a_newer_etcd_is_asked_and_only_for_our_own_keys(newer: NewerEtcd) -> None:
    store = await EtcdStore.connect([await newer.start()], prefix="/registry", compaction_interval=0)
    watch = store.watch("/registry/pods/", after=10)
    newer.tell(b"/registry/pods/a")
    (event,) = await next_events(watch, 1)
    assert (event.key, event.revision) == ("/registry/pods/a", 11)
    newer.revision = 20
    await watch.request_progress()
    assert (await next_batch(watch)).revision == 20
    watched = newer.watched.get_nowait()
    assert (watched.key, watched.range_end) == (b"/registry/", b"/registry0")
    assert newer.watched.empty()
    await store.close()


async def test_a_newer_etcd_is_asked_for_what_was_wanted_before_it_was_watched(newer: NewerEtcd) -> None:
    store = await EtcdStore.connect([await newer.start()], prefix="/registry", compaction_interval=0)
    newer.revision = 20
    watch = store.watch("/registry/pods/", after=10)
    await watch.request_progress()
    assert newer.watched.empty()
    assert (await next_batch(watch)).revision == 20
    await store.close()


async def test_a_newer_etcd_is_asked_again_until_old_events_are_through(newer: NewerEtcd) -> None:
    """It leaves questions unanswered while a watch catches up, and a watch that has no events left only answers."""
    url = await newer.start()
    newer.synced = False
    store = await EtcdStore.connect([url], prefix="/registry", compaction_interval=0)
    reading = asyncio.ensure_future(next_batch(watch := store.watch("/registry/pods/", after=5)))
    for _ in ("the feed", "the replay"):
        await newer.watched.get()
    newer.synced = True
    await watch.request_progress()
    assert (await reading).revision == 10
    await store.close()
