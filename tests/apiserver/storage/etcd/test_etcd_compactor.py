"""Several servers compact one etcd: once an interval, and only what is older than one."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from etcd_backend import connect
from etcd_process import EtcdProcess
from patience import PATIENCE

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.etcd.client import EtcdClient, EtcdEndpoint, EtcdTlsFiles
from pilothouse.apiserver.storage.etcd.maintenance import EtcdCompactor
from pilothouse.apiserver.storage.etcd.store import EtcdStore


async def _is_readable(store: EtcdStore, revision: int) -> bool:
    try:
        await store.list("/registry/", at=revision)
    except Compacted:
        return False
    return True


async def test_only_what_is_older_than_an_interval_is_compacted(etcd_store: EtcdStore, client: EtcdClient) -> None:
    old = await etcd_store.create("/registry/old", b"")
    compactor = EtcdCompactor(client)
    await compactor.compact_once()
    recent = await etcd_store.create("/registry/recent", b"")
    assert await _is_readable(etcd_store, old.modified)
    await compactor.compact_once()
    assert not await _is_readable(etcd_store, old.modified)
    assert await _is_readable(etcd_store, recent.modified)


async def test_of_two_servers_only_one_compacts_in_an_interval(etcd_store: EtcdStore, client: EtcdClient) -> None:
    first, second = EtcdCompactor(client), EtcdCompactor(client)
    await first.compact_once()
    await second.compact_once()
    noted_by_first = (await etcd_store.create("/registry/a", b"")).modified - 1
    noted_by_second = (await etcd_store.create("/registry/b", b"")).modified
    await first.compact_once()
    await second.compact_once()
    assert await etcd_store.get("compact_rev_key") is not None
    assert not await _is_readable(etcd_store, noted_by_first - 1)
    assert await _is_readable(etcd_store, noted_by_second)


async def test_a_server_takes_over_when_the_other_is_gone(etcd_store: EtcdStore, client: EtcdClient) -> None:
    first, second = EtcdCompactor(client), EtcdCompactor(client)
    await first.compact_once()
    await second.compact_once()
    old = await etcd_store.create("/registry/a", b"")
    await second.compact_once()
    await etcd_store.create("/registry/b", b"")
    await second.compact_once()
    assert not await _is_readable(etcd_store, old.modified)


async def test_the_key_is_the_one_that_kube_apiserver_uses(etcd_store: EtcdStore, client: EtcdClient) -> None:
    """Its value is the revision compacted to, and its version counts."""
    compactor = EtcdCompactor(client)
    await compactor.compact_once()
    noted = await etcd_store.current_revision()
    await compactor.compact_once()
    entry = await etcd_store.get("compact_rev_key")
    assert entry is not None
    assert entry.value == b"%d" % noted


async def test_a_compaction_that_fails_is_tried_again_an_interval_later(etcd: EtcdProcess) -> None:
    store = await connect(etcd.url)
    old = await store.create("/registry/old", b"")
    compacting = EtcdClient([EtcdEndpoint(etcd.url, EtcdTlsFiles())])
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        """etcd is away at the end of the second interval."""
        slept.append(seconds)
        if len(slept) == 2:
            etcd.stop()
        elif len(slept) == 3:
            etcd.start()
            await (await connect(etcd.url)).close()
        elif len(slept) > 3 and not await _is_readable(store, old.modified):
            raise asyncio.CancelledError

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await EtcdCompactor(compacting).run(300, sleep=sleep)
    assert set(slept) == {300}
    await compacting.close()
    await store.close()


async def test_a_store_compacts_itself_when_it_is_given_an_interval(shared: str) -> None:
    store = await EtcdStore.connect([shared], compaction_interval=0.02)
    old = await store.create("/registry/old", b"")
    async with asyncio.timeout(PATIENCE):
        while await _is_readable(store, old.modified):
            await store.create(f"/registry/{uuid.uuid4()}", b"")
    await store.close()
