"""Leases are shared by keys that go at about the same time, and a lost one is replaced."""

from __future__ import annotations

import grpc
from aetcd import rpc
from etcd_backend import connect

from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.storage.etcd.leases import LeaseManager
from pilothouse.apiserver.storage.etcd.store import EtcdStore


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def _ttl(client: EtcdClient, lease: int) -> int:
    request = rpc.LeaseTimeToLiveRequest(ID=lease)
    return int((await rpc.LeaseStub(client.endpoint.channel).LeaseTimeToLive(request)).grantedTTL)


async def test_a_lease_is_used_again_for_a_twentieth_of_its_time(client: EtcdClient) -> None:
    clock = Clock()
    leases = LeaseManager(client, now=clock)
    first = await leases.lease_for(1000)
    assert await _ttl(client, first) == 1050
    clock.now += 49
    assert await leases.lease_for(1000) == first
    clock.now += 2
    assert await leases.lease_for(1000) != first


async def test_a_lease_is_used_again_for_a_minute_at_most(client: EtcdClient) -> None:
    clock = Clock()
    leases = LeaseManager(client, now=clock)
    first = await leases.lease_for(3600)
    assert await _ttl(client, first) == 3660
    clock.now += 59
    assert await leases.lease_for(3600) == first
    clock.now += 2
    assert await leases.lease_for(3600) != first


async def test_keys_with_other_times_do_not_share_a_lease(client: EtcdClient) -> None:
    leases = LeaseManager(client, now=Clock())
    long = await leases.lease_for(1000)
    assert await leases.lease_for(500) != long


async def test_a_lease_holds_a_thousand_keys(client: EtcdClient) -> None:
    leases = LeaseManager(client, now=Clock())
    given = [await leases.lease_for(1000) for _ in range(1001)]
    assert len(set(given[:1000])) == 1
    assert given[1000] != given[0]


async def test_a_write_whose_lease_is_gone_gets_a_new_one(etcd_store: EtcdStore, shared: str) -> None:
    await etcd_store.create("/registry/a", b"", ttl=1000)
    async with grpc.aio.insecure_channel(shared.removeprefix("http://")) as channel:
        stub = rpc.LeaseStub(channel)
        for lease in (await stub.LeaseLeases(rpc.LeaseLeasesRequest())).leases:
            await stub.LeaseRevoke(rpc.LeaseRevokeRequest(ID=lease.ID))
    assert await etcd_store.get("/registry/a") is None
    entry = await etcd_store.create("/registry/b", b"", ttl=1000)
    assert await etcd_store.get("/registry/b") == entry


async def test_a_key_of_a_store_that_was_closed_still_goes(shared: str) -> None:
    """Its lease is etcd's, and nobody keeps it alive."""
    store = await connect(shared)
    await store.create("/registry/a", b"", ttl=1000)
    await store.close()
    async with grpc.aio.insecure_channel(shared.removeprefix("http://")) as channel:
        pair = (await rpc.KVStub(channel).Range(rpc.RangeRequest(key=b"/registry/a"))).kvs[0]
        status = await rpc.LeaseStub(channel).LeaseTimeToLive(rpc.LeaseTimeToLiveRequest(ID=pair.lease))
    assert 990 < status.TTL <= 1050
