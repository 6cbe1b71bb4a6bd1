"""The repair of addresses and node ports: whatever happened to the pools, they agree with the services again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from services import Cluster, service_cluster

from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kube.core.services.ipallocator import new_ip_address
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.services.port_set import PortSet
from pilothouse.kube.core.services.repair import ROUNDS_BEFORE_CLEANUP, ClusterIPRepair, NodePortRepair, used_ports
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import system_clock

NETWORK = ServiceNetwork(("10.0.0.0/24",), range(30000, 30100))
LATER = timedelta(minutes=2)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with service_cluster(tmp_path, NETWORK) as opened:
        yield opened


def ip_repair(cluster: Cluster, after: timedelta = timedelta()) -> ClusterIPRepair:
    def clock() -> datetime:
        return system_clock() + after

    registries = (cluster.services.registry, cluster.cidrs.registry, cluster.addresses.registry)
    return ClusterIPRepair(*registries, clock=clock)


def orphan(name: str = "gone", namespace: str = "default") -> Json:
    return new_ip_address("10.0.0.9", {"metadata": {"name": name, "namespace": namespace}})


async def test_a_missing_address_is_created_again(cluster: Cluster) -> None:
    made = await cluster.create("web")
    await cluster.addresses.delete(made["spec"]["clusterIP"])
    await ip_repair(cluster).run_once()
    assert await cluster.taken_addresses() == made["spec"]["clusterIPs"]


async def test_address_without_parent_is_recreated(cluster: Cluster) -> None:
    made = await cluster.create("web")
    ip = made["spec"]["clusterIP"]
    await cluster.addresses.delete(ip)
    await cluster.addresses.create(new_ip_address(ip, {"metadata": {"name": "gone", "namespace": "default"}}))
    await ip_repair(cluster).run_once()
    address = await cluster.addresses.get(ip)
    assert address is not None
    assert address["spec"]["parentRef"]["name"] == "web"


async def test_address_without_labels_is_recreated(cluster: Cluster) -> None:
    made = await cluster.create("web")
    address = await cluster.addresses.get(made["spec"]["clusterIP"])
    assert address is not None
    await cluster.addresses.update(address, lambda current: current["metadata"].pop("labels"))
    await ip_repair(cluster).run_once()
    repaired = await cluster.addresses.get(made["spec"]["clusterIP"])
    assert repaired is not None
    assert len(repaired["metadata"]["labels"]) == 2


async def test_orphaned_address_is_deleted_after_the_longest_write(cluster: Cluster) -> None:
    await cluster.addresses.create(orphan())
    await ip_repair(cluster).run_once()
    assert await cluster.taken_addresses() == ["10.0.0.9"]
    await ip_repair(cluster, LATER).run_once()
    assert await cluster.taken_addresses() == []


async def test_address_that_the_parent_service_lacks_is_deleted(cluster: Cluster) -> None:
    made = await cluster.create("web", clusterIP="10.0.0.5")
    await cluster.addresses.create(orphan("web"))
    await ip_repair(cluster, LATER).run_once()
    assert await cluster.taken_addresses() == made["spec"]["clusterIPs"]


async def test_addresses_of_other_managers_are_left_alone(cluster: Cluster) -> None:
    foreign = orphan()
    foreign["metadata"]["labels"] = {"ipaddress.kubernetes.io/managed-by": "example.com"}
    await cluster.addresses.create(foreign)
    await ip_repair(cluster, LATER).run_once()
    assert await cluster.taken_addresses() == ["10.0.0.9"]


async def test_a_lost_bitmap_is_rebuilt_from_the_services(cluster: Cluster) -> None:
    await cluster.create("web", type="NodePort", ports=[{"port": 80, "nodePort": 30007}])
    await cluster.ports.replace(await cluster.ports.snapshot(), PortSet(NETWORK.node_ports))
    await NodePortRepair(cluster.services.registry, cluster.ports).run_once()
    assert await cluster.taken_ports() == [30007]


async def test_a_leaked_port_is_free_after_some_rounds(cluster: Cluster) -> None:
    await cluster.ports.allocate(30042)
    repair = NodePortRepair(cluster.services.registry, cluster.ports)
    for _ in range(ROUNDS_BEFORE_CLEANUP - 1):
        await repair.run_once()
        assert await cluster.taken_ports() == [30042]
    await repair.run_once()
    assert await cluster.taken_ports() == []


async def test_port_with_a_late_service_is_not_released(cluster: Cluster) -> None:
    await cluster.ports.allocate(30042)
    repair = NodePortRepair(cluster.services.registry, cluster.ports)
    await repair.run_once()
    await cluster.ports.release(30042)
    await cluster.create("web", type="NodePort", ports=[{"port": 80, "nodePort": 30042}])
    for _ in range(ROUNDS_BEFORE_CLEANUP):
        await repair.run_once()
    assert await cluster.taken_ports() == [30042]


async def test_repair_without_findings_does_not_write(cluster: Cluster) -> None:
    await cluster.create("web", type="NodePort")
    before = await cluster.store.current_revision()
    await NodePortRepair(cluster.services.registry, cluster.ports).run_once()
    await ip_repair(cluster, LATER).run_once()
    assert await cluster.store.current_revision() == before


@pytest.mark.parametrize(
    ("ports", "health", "used"),
    [
        ([("TCP", 30000), ("UDP", 30000)], 0, [30000]),
        ([("TCP", 30000), ("TCP", 30000)], 0, [30000, 30000]),
        ([("TCP", 30000)], 30001, [30000, 30001]),
        ([("UDP", 30000)], 30000, [30000]),
        ([("TCP", 30000)], 30000, [30000, 30000]),
        ([("TCP", 0)], 0, []),
    ],
)
def test_a_port_that_two_protocols_share_is_used_once(
    ports: list[tuple[str, int]], health: int, used: list[int]
) -> None:
    listed = [{"protocol": protocol, "nodePort": number} for protocol, number in ports]
    assert used_ports({"spec": {"ports": listed, "healthCheckNodePort": health}}) == used


async def test_metrics_count_existing_allocations_after_a_restart(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, NETWORK) as first:
        await first.create("web", type="NodePort")
    async with service_cluster(tmp_path, NETWORK):
        assert REGISTRY.get_sample_value("kube_apiserver_nodeport_allocator_allocated_ports") == 1
        assert REGISTRY.get_sample_value("kube_apiserver_nodeport_allocator_available_ports") == 99
        labels = {"cidr": "10.0.0.0/24"}
        assert REGISTRY.get_sample_value("kube_apiserver_clusterip_allocator_allocated_ips", labels) == 1
        assert REGISTRY.get_sample_value("kube_apiserver_clusterip_allocator_available_ips", labels) == 253
