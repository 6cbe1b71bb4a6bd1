"""Allocation around the writes of services, on a real store: what they take, give back and undo."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from services import Cluster, new_service, service_cluster

from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.services.resource import SERVICES
from pilothouse.machinery.errors import AlreadyExists, Invalid
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.server_errors import InternalError

DUAL = ServiceNetwork(("10.0.0.0/28", "fd00::/112"), range(30000, 30010))
"""Fourteen IPv4 addresses and ten node ports: both can run out."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with service_cluster(tmp_path, DUAL) as opened:
        yield opened


async def patched(cluster: Cluster, name: str, **spec: object) -> Json:
    def change(service: Json) -> None:
        service["spec"].update(spec)
        SERVICES.strategy.default(service)

    await cluster.services.update(new_service(name), change)
    updated = await cluster.services.get(name, namespace="default")
    assert updated is not None
    return updated


async def test_allocated_address_refers_to_the_service(cluster: Cluster) -> None:
    made = await cluster.create("web")
    (address,) = await cluster.addresses.list()
    assert address["metadata"]["name"] == made["spec"]["clusterIP"]
    assert address["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "web"}
    assert labels_of(address) == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }


async def test_two_stacks_take_two_addresses_and_give_one_back(cluster: Cluster) -> None:
    made = await cluster.create("web", ipFamilyPolicy="RequireDualStack")
    assert await cluster.taken_addresses() == sorted(made["spec"]["clusterIPs"])
    updated = await patched(cluster, "web", ipFamilyPolicy="SingleStack")
    assert await cluster.taken_addresses() == updated["spec"]["clusterIPs"] == made["spec"]["clusterIPs"][:1]
    upgraded = await patched(cluster, "web", ipFamilyPolicy="PreferDualStack")
    assert upgraded["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert await cluster.taken_addresses() == sorted(upgraded["spec"]["clusterIPs"])


async def test_an_external_name_gives_everything_back_and_takes_it_again(cluster: Cluster) -> None:
    await cluster.create("web", type="NodePort")
    await patched(cluster, "web", type="ExternalName", externalName="a.b")
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == ([], [])
    made = await patched(cluster, "web", type="NodePort")
    assert await cluster.taken_addresses() == made["spec"]["clusterIPs"]
    assert await cluster.taken_ports() == [made["spec"]["ports"][0]["nodePort"]]


async def test_a_deleted_service_leaves_nothing_behind(cluster: Cluster) -> None:
    await cluster.create("web", type="LoadBalancer", externalTrafficPolicy="Local")
    assert len(await cluster.taken_ports()) == 2
    await cluster.services.delete("web", namespace="default")
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == ([], [])


async def test_a_deleted_service_that_a_finalizer_keeps_has_its_address_until_the_end(cluster: Cluster) -> None:
    service = new_service("web")
    service["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.services.create(service)
    await cluster.services.delete("web", namespace="default")
    assert len(await cluster.taken_addresses()) == 1
    await cluster.services.update(service, lambda current: current["metadata"].pop("finalizers"))
    assert await cluster.taken_addresses() == []


@pytest.mark.parametrize("spec", [{"sessionAffinity": "Odd"}, {"ports": [{"port": 1, "nodePort": 30001}, {"port": 2}]}])
async def test_a_refused_service_takes_nothing(cluster: Cluster, spec: Json) -> None:
    with pytest.raises(Invalid):
        await cluster.create("web", type="NodePort", **spec)
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == ([], [])


async def test_create_with_existing_name_allocates_nothing(cluster: Cluster) -> None:
    await cluster.create("web", type="NodePort")
    before = (await cluster.taken_addresses(), await cluster.taken_ports())
    with pytest.raises(AlreadyExists):
        await cluster.create("web", type="NodePort")
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == before


async def test_a_refused_update_keeps_what_the_service_has(cluster: Cluster) -> None:
    await cluster.create("web", type="NodePort")
    before = (await cluster.taken_addresses(), await cluster.taken_ports())
    with pytest.raises(Invalid):
        await patched(cluster, "web", type="ExternalName", externalName="not a name")
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == before


async def test_concurrent_creates_take_every_address_once(cluster: Cluster) -> None:
    await asyncio.gather(*(cluster.services.create(new_service(f"s{n}")) for n in range(14)))
    services = await cluster.services.list()
    assert len({service["spec"]["clusterIP"] for service in services}) == 14
    with pytest.raises(InternalError, match='failed to allocate a serviceIP for Service "more": range is full'):
        await cluster.create("more")


async def test_node_ports_run_out_without_a_leak(cluster: Cluster) -> None:
    ports = [{"port": n + 1, "name": f"p{n}"} for n in range(11)]
    with pytest.raises(InternalError, match="failed to allocate a nodePort: range is full"):
        await cluster.create("web", type="NodePort", ports=ports)
    assert (await cluster.taken_addresses(), await cluster.taken_ports()) == ([], [])


async def test_two_protocols_of_one_port_share_a_node_port(cluster: Cluster) -> None:
    ports = [{"port": 53, "name": "u", "protocol": "UDP"}, {"port": 53, "name": "t"}]
    made = await cluster.create("dns", type="NodePort", ports=ports)
    assert len({port["nodePort"] for port in made["spec"]["ports"]}) == 1
    assert len(await cluster.taken_ports()) == 1


async def test_an_address_of_a_second_range_can_be_had_until_the_range_is_not_ready(cluster: Cluster) -> None:
    await cluster.cidrs.create(
        {"kind": "ServiceCIDR", "metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/24"]}}
    )
    made = await cluster.create("web", clusterIP="10.9.0.7")
    assert made["spec"]["clusterIPs"] == ["10.9.0.7"]
    with pytest.raises(Invalid, match="the provided network does not match the current range"):
        await cluster.create("other", clusterIP="10.8.0.7")


async def test_allocations_survive_a_restart(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, DUAL) as first:
        made = await first.create("web", type="NodePort")
    taken = made["spec"]["ports"][0]["nodePort"]
    async with service_cluster(tmp_path, DUAL) as second:
        assert await second.taken_addresses() == made["spec"]["clusterIPs"]
        with pytest.raises(Invalid, match="provided IP is already allocated"):
            await second.create("other", clusterIP=made["spec"]["clusterIP"])
        with pytest.raises(Invalid, match="provided port is already allocated"):
            await second.create("other", type="NodePort", ports=[{"port": 1, "nodePort": taken}])
        assert await second.taken_addresses() == made["spec"]["clusterIPs"]


async def test_a_new_port_range_takes_effect_with_a_restart(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, DUAL) as first:
        await first.create("old", type="NodePort")
    moved = ServiceNetwork(DUAL.cluster_ip_ranges, range(31000, 31010))
    async with service_cluster(tmp_path, moved) as second:
        made = await second.create("new", type="NodePort")
        assert made["spec"]["ports"][0]["nodePort"] in moved.node_ports
