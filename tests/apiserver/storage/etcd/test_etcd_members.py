"""A cluster of three members: it takes two to lose a write, and one to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from aetcd import rpc
from etcd_process import NO_ETCD_THAT_KEEPS_WRITES, EtcdProcess, cluster_of, free_port, keeps_writes
from patience import PATIENCE
from store_reading import next_events

from pilothouse.apiserver.storage.errors import KeyExists, Unavailable
from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import EtcdClient, EtcdEndpoint, EtcdTlsFiles
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.interface import Entry, Event


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[EtcdProcess]]:
    members = [EtcdProcess(tmp_path, name=f"m{i}") for i in range(3)]
    for member in members:
        member.cluster = cluster_of(members)
        member.start()
    yield members
    for member in members:
        member.kill()


async def _connect(members: list[EtcdProcess]) -> EtcdStore:
    """With little patience: a member waits for seconds for what it has sent to a leader that is dead."""
    urls = [member.url for member in members]
    return await EtcdStore.connect(urls, compaction_interval=0, request_timeout=1)


async def _create(store: EtcdStore, key: str) -> Entry:
    """Tries until it is there."""
    while True:
        try:
            return await store.create(key, b"x" * 500)
        except KeyExists:
            entry = await store.get(key)
            assert entry is not None
            return entry
        except Unavailable:
            await asyncio.sleep(0.02)


async def test_writes_and_watches_go_on_when_the_member_that_serves_them_dies(members: list[EtcdProcess]) -> None:
    store = await _connect(members)
    watch = store.watch("/registry/", after=await store.current_revision())
    entries = [await _create(store, f"/registry/{i:02}") for i in range(10)]
    events: list[Event] = await next_events(watch, 5)
    members[0].kill()
    async with asyncio.timeout(PATIENCE):
        entries += [await _create(store, f"/registry/{i:02}") for i in range(10, 20)]
    events += await next_events(watch, 20 - len(events))
    assert [event.entry for event in events] == entries == (await store.list("/registry/")).entries
    await store.close()


async def _write_until_it_fails(store: EtcdStore, writer: int, acknowledged: list[Entry]) -> Unavailable:
    for number in count():
        try:
            acknowledged.append(await store.create(f"/registry/{writer}/{number}", b"x" * 500))
        except Unavailable as error:
            return error
    raise AssertionError


@pytest.mark.skipif(not keeps_writes(), reason=NO_ETCD_THAT_KEEPS_WRITES)
async def test_every_acknowledged_write_is_there_after_all_members_are_killed_in_the_middle_of_writes(
    members: list[EtcdProcess],
) -> None:
    store = await _connect(members)
    start = await store.current_revision()
    acknowledged: list[Entry] = []
    writers = [asyncio.ensure_future(_write_until_it_fails(store, i, acknowledged)) for i in range(16)]
    await next_events(store.watch("/registry/", after=start), 200)
    for member in members:
        member.kill()
    errors = await asyncio.gather(*writers)
    for member in members:
        member.start()
    marker = await _create(store, "/registry/marker")
    there = {entry.key: entry for entry in (await store.list("/registry/", at=marker.modified - 1)).entries}
    assert len(acknowledged) >= 150
    assert {entry.key: entry for entry in acknowledged}.items() <= there.items()
    # What is there without having been acknowledged was on its way, and its writer was told so.
    assert len(there) - len(acknowledged) <= sum(error.uncertain for error in errors)
    await store.close()


async def test_what_was_not_sent_to_a_dead_member_is_sent_to_the_next_and_stays_there(shared: str) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    for request in (messages.current_revision(), messages.create("/registry/a", b"", lease=0)):
        client = EtcdClient([EtcdEndpoint(url, EtcdTlsFiles()) for url in (dead, shared)])
        send = client.txn if isinstance(request, rpc.TxnRequest) else client.range
        assert (await send(request)).header.revision > 0
        assert client.endpoint.url == shared
        await client.close()


async def test_a_member_that_is_not_there_is_passed_over(members: list[EtcdProcess]) -> None:
    members[0].kill()
    store = await _connect(members)
    entry = await _create(store, "/registry/a")
    assert await store.get("/registry/a") == entry
    await store.close()
