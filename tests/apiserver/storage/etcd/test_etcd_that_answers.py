"""How far a watch has come, asked of a real etcd that answers: 3.5.13 or later, which one has to bring along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from etcd_backend import connect
from etcd_process import NO_ETCD_THAT_ANSWERS, version
from store_reading import events_until, next_batch

from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.etcd.stream import answers_progress_requests

pytestmark = pytest.mark.skipif(not answers_progress_requests(version()), reason=NO_ETCD_THAT_ANSWERS)


@pytest.fixture
async def registry(shared: str) -> AsyncIterator[EtcdStore]:
    store = await EtcdStore.connect([shared], prefix="/registry", compaction_interval=0)
    yield store
    await store.close()


@pytest.fixture
async def other(shared: str) -> AsyncIterator[EtcdStore]:
    store = await connect(shared)
    yield store
    await store.close()


async def test_each_of_many_questions_is_answered_over_one_stream_that_lasts(
    registry: EtcdStore, other: EtcdStore, caplog: pytest.LogCaptureFixture
) -> None:
    current = await registry.current_revision()
    watches = [registry.watch(f"/registry/{i}/", after=current) for i in range(60)]
    for i in range(20):
        elsewhere = await other.create(f"/elsewhere/{i}", b"")
        await asyncio.gather(*(watch.request_progress() for watch in watches))
        assert {(await next_batch(watch)).revision for watch in watches} == {elsewhere.modified}
    assert caplog.messages == []


async def test_progress_never_overtakes_events(registry: EtcdStore, other: EtcdStore) -> None:
    watch = registry.watch("/registry/", after=await registry.current_revision())
    for i in range(50):
        entry = (await asyncio.gather(other.create(f"/registry/{i}", b""), watch.request_progress()))[0]
        batch = await next_batch(watch)
        while not batch.events:
            assert batch.revision < entry.modified
            batch = await next_batch(watch)
        assert [event.revision for event in batch.events] == [entry.modified]


async def test_a_watch_from_long_ago_ends_its_replay_though_the_last_writes_are_of_others(
    registry: EtcdStore, other: EtcdStore
) -> None:
    before = await registry.current_revision()
    entries = [await other.create(f"/registry/{i}", b"") for i in range(10)]
    for i in range(10):
        await other.create(f"/elsewhere/{i}", b"")
    told = await events_until(registry, "/registry/", after=before, last=entries[-1].modified)
    assert [event.entry for event in told] == entries
