"""Old events and old lists: complete, or refused with what is still there."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from aetcd import rpc
from etcd_backend import connect
from patience import PATIENCE
from store_reading import events_until, next_batch, next_events

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.etcd.stream import ServerWatch
from pilothouse.apiserver.storage.interface import Event, Page


async def test_a_watch_right_before_a_compacted_delete_is_refused(etcd_store: EtcdStore) -> None:
    """etcd itself would start the watch and leave the delete out."""
    entry = await etcd_store.create("/registry/a", b"")
    deleted = await etcd_store.delete("/registry/a", expected=entry.modified)
    await etcd_store.compact(deleted.modified)
    watch = etcd_store.watch("/registry/", after=entry.modified)
    with pytest.raises(Compacted) as refusal:
        await next_batch(watch)
    assert (refusal.value.requested, refusal.value.oldest) == (entry.modified, deleted.modified)


async def test_a_watch_that_began_too_late_for_its_start_begins_again(
    client: EtcdClient, etcd_store: EtcdStore
) -> None:
    """While it was being created another process has changed, deleted and compacted what it was to tell first."""
    entry = await etcd_store.create("/registry/a", b"")
    client.saw(entry.modified)
    deleted = await etcd_store.delete("/registry/a", expected=entry.modified)
    await rpc.KVStub(client.endpoint.channel).Compact(rpc.CompactionRequest(revision=deleted.modified, physical=True))
    watch = ServerWatch(client, own="", after=entry.modified)
    await watch.open()
    with pytest.raises(Compacted):
        async with asyncio.timeout(PATIENCE):
            await watch.read()
    watch.close()


async def test_a_refused_list_says_what_is_still_kept(etcd_store: EtcdStore) -> None:
    entries = [await etcd_store.create(f"/registry/{i}", b"") for i in range(5)]
    await etcd_store.compact(entries[3].modified)
    with pytest.raises(Compacted) as refusal:
        await etcd_store.list("/registry/", at=entries[0].modified)
    assert (refusal.value.requested, refusal.value.oldest) == (entries[0].modified, entries[3].modified)


async def test_a_list_longer_than_one_answer_is_whole(etcd_store: EtcdStore) -> None:
    entries = await asyncio.gather(*(etcd_store.create(f"/registry/{i:05}", b"") for i in range(2000)))
    then = await etcd_store.current_revision()
    entries += await asyncio.gather(*(etcd_store.create(f"/registry/{i:05}", b"") for i in range(2000, 2105)))
    now = await etcd_store.current_revision()
    assert await etcd_store.list("/registry/") == Page(entries, now)
    assert await etcd_store.list("/registry/", limit=1500) == Page(entries[:1500], now, 605)
    assert await etcd_store.list("/registry/", at=then) == Page(entries[:2000], then)


async def _lease(url: str, *, revoke: int = 0) -> int:
    async with grpc.aio.insecure_channel(url.removeprefix("http://")) as channel:
        stub = rpc.LeaseStub(channel)
        if revoke:
            await stub.LeaseRevoke(rpc.LeaseRevokeRequest(ID=revoke))
            return 0
        return int((await stub.LeaseGrant(rpc.LeaseGrantRequest(TTL=600))).ID)


async def test_many_large_changes_of_one_revision_come_in_one_batch(etcd_store: EtcdStore, shared: str) -> None:
    """Keys that share a lease go at one revision. etcd cuts what it tells of it into several answers."""
    lease = await _lease(shared)
    entries = [await _create_with(shared, f"/registry/{i}", b"x" * 900_000, lease) for i in range(4)]
    watch = etcd_store.watch("/registry/", after=entries[-1])
    await _lease(shared, revoke=lease)
    batch = await next_batch(watch)
    revision = entries[-1] + 1
    assert {(event.revision, event.key, event.entry) for event in batch.events} == {
        (revision, f"/registry/{i}", None) for i in range(4)
    }
    assert all(event.previous and len(event.previous.value) == 900_000 for event in batch.events)
    assert batch.revision == revision


async def _create_with(url: str, key: str, value: bytes, lease: int) -> int:
    async with grpc.aio.insecure_channel(url.removeprefix("http://")) as channel:
        put = rpc.PutRequest(key=key.encode(), value=value, lease=lease)
        return int((await rpc.KVStub(channel).Put(put)).header.revision)


async def test_a_watch_that_falls_behind_within_a_revision_gets_each_change_once(shared: str) -> None:
    """Its queue is full in the middle of a revision that changes a thousand keys, and another one follows."""
    store = await connect(shared)
    expected: list[str] = []
    watch = store.watch("/registry/", after=await store.current_revision())
    for life in range(3):
        lease = await _lease(shared)
        async with grpc.aio.insecure_channel(shared.removeprefix("http://")) as channel:
            for i in range(600):
                key = f"/registry/{life}/{i}"
                await rpc.KVStub(channel).Put(rpc.PutRequest(key=key.encode(), lease=lease))
        await _lease(shared, revoke=lease)
        expected += [f"/registry/{life}/{i}" for i in range(600)] * 2
    events: list[Event] = []
    while len(events) < len(expected):
        events += (await next_batch(watch)).events
    assert sorted(event.key for event in events) == sorted(expected)
    assert [event.revision for event in events] == sorted(event.revision for event in events)
    await store.close()


async def test_a_key_that_is_no_text_does_not_end_a_watch_or_a_list(etcd_store: EtcdStore, shared: str) -> None:
    watch = etcd_store.watch("/registry/", after=await etcd_store.current_revision())
    async with grpc.aio.insecure_channel(shared.removeprefix("http://")) as channel:
        await rpc.KVStub(channel).Put(rpc.PutRequest(key=b"/registry/\xff"))
    entry = await etcd_store.create("/registry/a", b"")
    assert [event.entry for event in await next_events(watch, 2)][1] == entry
    assert len((await etcd_store.list("/registry/")).entries) == 2


async def test_replayed_events_are_kept_for_the_next_watch(shared: str) -> None:
    """So that many watches that resume in the past do not each read it from etcd."""
    store = await connect(shared)
    start = await store.current_revision()
    entries = [await store.create(f"/registry/{i}", b"") for i in range(5)]
    await store.close()
    store = await connect(shared)
    last = entries[-1].modified
    first = await events_until(store, "/registry/", after=start, last=last)
    await store.compact(last)
    assert await events_until(store, "/registry/", after=start, last=last) == first
    await store.close()
