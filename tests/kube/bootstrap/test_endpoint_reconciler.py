"""Several servers on one store: the `kubernetes` service leads to those that are alive."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

import pytest
from patience import PATIENCE

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.endpoint_reconciler import (
    NAME,
    NAMESPACE,
    EndpointLeases,
    LeaseEndpointReconciler,
    MasterCountEndpointReconciler,
    WrittenEndpoints,
)
from pilothouse.kube.core.endpoints import ENDPOINTS
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.registries import Registries
from pilothouse.machinery.objects import Json, labels_of, metadata, resource_version_of


@dataclass(frozen=True)
class Cluster:
    registries: Registries

    @property
    def leases(self) -> EndpointLeases:
        return EndpointLeases(self.registries.store)

    @property
    def endpoints(self) -> OwnAccess:
        return OwnAccess(self.registries.open(ENDPOINTS))

    @property
    def slices(self) -> OwnAccess:
        return OwnAccess(self.registries.open(ENDPOINT_SLICES))

    def server(self, ip: str, port: int = 6443) -> LeaseEndpointReconciler:
        address = PublicAddress(ip, port)
        return LeaseEndpointReconciler(address, self.leases, self.written_by(address))

    def one_of(self, count: int, ip: str, port: int = 6443) -> MasterCountEndpointReconciler:
        address = PublicAddress(ip, port)
        return MasterCountEndpointReconciler(address, count, self.written_by(address))

    def written_by(self, address: PublicAddress) -> WrittenEndpoints:
        return WrittenEndpoints(address, endpoints=self.endpoints, slices=self.slices)

    async def read(self, access: OwnAccess) -> Json:
        found = await access.get(NAME, namespace=NAMESPACE)
        assert found is not None
        return found

    async def listed(self) -> list[str]:
        subsets = (await self.read(self.endpoints)).get("subsets") or []
        return [address["ip"] for subset in subsets for address in subset["addresses"]]

    async def in_slice(self) -> list[str]:
        return [each["addresses"][0] for each in (await self.read(self.slices))["endpoints"] or []]


@pytest.fixture
def cluster(registries: Registries) -> Cluster:
    return Cluster(registries)


async def test_every_server_is_listed_whoever_writes(cluster: Cluster) -> None:
    for ip in ("10.1.0.2", "10.1.0.1"):
        await cluster.server(ip).reconcile()
    assert await cluster.listed() == await cluster.in_slice() == ["10.1.0.1", "10.1.0.2"]


async def test_a_server_that_vanished_is_dropped_by_the_others(cluster: Cluster) -> None:
    gone, alive = cluster.server("10.1.0.1"), cluster.server("10.1.0.2")
    await gone.reconcile()
    await alive.reconcile()
    await cluster.leases.remove("10.1.0.1")  # as it would run out
    await alive.reconcile()
    assert await cluster.listed() == await cluster.in_slice() == ["10.1.0.2"]


async def test_a_server_that_stops_removes_itself_and_never_comes_back(cluster: Cluster) -> None:
    stopping, other = cluster.server("10.1.0.1"), cluster.server("10.1.0.2")
    await stopping.reconcile()
    await other.reconcile()
    await stopping.remove()
    await stopping.reconcile()
    assert await cluster.listed() == ["10.1.0.2"]
    await other.remove()
    assert await cluster.listed() == await cluster.in_slice() == []


async def test_a_round_in_which_nothing_changed_writes_nothing_but_the_lease(cluster: Cluster) -> None:
    server = cluster.server("10.1.0.1")
    await server.reconcile()
    before = [resource_version_of(await cluster.read(each)) for each in (cluster.endpoints, cluster.slices)]
    await server.reconcile()
    after = [resource_version_of(await cluster.read(each)) for each in (cluster.endpoints, cluster.slices)]
    assert before == after


async def test_what_somebody_else_wrote_there_is_put_right(cluster: Cluster) -> None:
    server = cluster.server("10.1.0.1")
    await server.reconcile()

    def spoil(obj: Json) -> None:
        obj["subsets"] = [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 1, "protocol": "TCP"}]}] * 2
        metadata(obj)["labels"] = {}

    await cluster.endpoints.update(await cluster.read(cluster.endpoints), spoil)
    await cluster.slices.delete(NAME, namespace=NAMESPACE)
    await server.reconcile()
    assert await cluster.listed() == await cluster.in_slice() == ["10.1.0.1"]
    labels = labels_of(await cluster.read(cluster.endpoints))
    assert labels == {"endpointslice.kubernetes.io/skip-mirror": "true"}


async def test_only_a_server_that_is_alone_corrects_the_port(cluster: Cluster) -> None:
    async def ports() -> list[int]:
        return [port["port"] for port in (await cluster.read(cluster.endpoints))["subsets"][0]["ports"]]

    await cluster.server("10.1.0.1", 6443).reconcile()
    await cluster.server("10.1.0.2", 7443).reconcile()
    assert await ports() == [6443]
    await cluster.leases.remove("10.1.0.1")
    await cluster.server("10.1.0.2", 7443).reconcile()
    assert await ports() == [7443]
    assert [port["port"] for port in (await cluster.read(cluster.slices))["ports"]] == [7443]


async def test_a_server_that_died_is_not_listed_while_it_starts_again(cluster: Cluster) -> None:
    await cluster.server("10.1.0.1").reconcile()
    await cluster.server("10.1.0.2").reconcile()
    assert await cluster.server("10.1.0.1").forget_earlier_run()
    assert await cluster.listed() == await cluster.in_slice() == ["10.1.0.2"]
    assert not await cluster.server("10.1.0.1").forget_earlier_run()


async def test_a_cluster_that_turns_to_ipv6_gets_a_slice_of_that_kind(cluster: Cluster) -> None:
    await cluster.server("10.1.0.1").reconcile()
    await cluster.leases.remove("10.1.0.1")
    await cluster.server("fd00::1").reconcile()
    assert (await cluster.read(cluster.slices))["addressType"] == "IPv6"
    assert await cluster.in_slice() == ["fd00::1"]


async def test_whatever_servers_do_the_last_to_write_lists_those_with_a_lease(cluster: Cluster) -> None:
    random = Random(7)
    servers = {ip: cluster.server(ip) for ip in ("10.1.0.1", "10.1.0.2", "10.1.0.3")}
    alive: set[str] = set()
    for _ in range(60):
        ip = random.choice(list(servers))
        action = random.choice(("reconcile", "reconcile", "remove", "die"))
        if action == "reconcile":
            await servers[ip].reconcile()
            alive.add(ip)
            assert await cluster.listed() == await cluster.in_slice() == sorted(alive)
            continue
        alive.discard(ip)
        if action == "die":
            await cluster.leases.remove(ip)
        elif ip in await cluster.leases.list():
            await servers[ip].remove()
            assert await cluster.listed() == await cluster.in_slice() == sorted(alive)
        servers[ip] = cluster.server(ip)


async def test_a_lease_that_nobody_renews_runs_out(cluster: Cluster) -> None:
    store = cluster.registries.store
    leases, began = EndpointLeases(store, ttl=1), await store.current_revision()
    await leases.renew("10.1.0.1")
    await leases.renew("10.1.0.1")
    watch = store.watch("/registry/masterleases/", after=began)
    async with asyncio.timeout(PATIENCE):
        async for batch in watch:
            if any(event.entry is None for event in batch.events):
                break
    await watch.aclose()
    assert await leases.list() == []


async def test_counted_servers_add_themselves_and_take_themselves_off(cluster: Cluster) -> None:
    first, second = cluster.one_of(2, "10.1.0.1"), cluster.one_of(2, "10.1.0.2")
    await second.reconcile()
    await first.reconcile()
    assert await cluster.listed() == await cluster.in_slice() == ["10.1.0.1", "10.1.0.2"]
    await first.remove()
    await first.reconcile()
    assert await cluster.listed() == ["10.1.0.2"]
    assert await cluster.one_of(2, "10.1.0.2").forget_earlier_run()
    assert await cluster.listed() == []


async def test_of_more_servers_than_there_are_those_behind_the_writer_go(cluster: Cluster) -> None:
    for last in (2, 3, 4):
        await cluster.one_of(3, f"10.1.0.{last}").reconcile()
    await cluster.one_of(2, "10.1.0.3").reconcile()
    assert await cluster.listed() == ["10.1.0.2", "10.1.0.3"]
    await cluster.one_of(2, "10.1.0.9").reconcile()
    assert await cluster.listed() == ["10.1.0.3", "10.1.0.9"]


async def test_a_counted_server_puts_the_ports_right(cluster: Cluster) -> None:
    await cluster.one_of(2, "10.1.0.1", 6443).reconcile()
    await cluster.one_of(2, "10.1.0.2", 8443).reconcile()
    assert (await cluster.read(cluster.endpoints))["subsets"][0]["ports"][0]["port"] == 8443
