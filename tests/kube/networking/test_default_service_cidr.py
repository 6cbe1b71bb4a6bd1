"""The ServiceCIDR that every cluster has."""

from __future__ import annotations

from pathlib import Path

from services import Cluster, service_cluster

from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.networking.service_cidrs import DefaultServiceCIDR
from pilothouse.machinery.objects import Json

SINGLE = ServiceNetwork(("10.0.0.5/24",))
DUAL = ServiceNetwork(("10.0.0.0/24", "fd00::/112"))


async def default_cidr(cluster: Cluster) -> Json:
    found = await cluster.cidrs.get("kubernetes")
    assert found is not None
    return found


async def test_it_is_made_from_the_flag_and_ready(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, SINGLE) as cluster:
        made = await default_cidr(cluster)
    assert made["spec"] == {"cidrs": ["10.0.0.0/24"]}
    (condition,) = made["status"]["conditions"]
    del condition["lastTransitionTime"]
    message = "Kubernetes default Service CIDR is ready"
    assert condition == {"type": "Ready", "status": "True", "reason": "", "message": message}


async def test_its_status_is_applied_by_the_controller(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, SINGLE) as cluster:
        entries = (await default_cidr(cluster))["metadata"]["managedFields"]
    owners = [(entry["manager"], entry["operation"], entry.get("subresource")) for entry in entries]
    assert owners == [
        ("kubernetes-service-cidr-controller", "Apply", "status"),
        ("kube-apiserver", "Update", None),
    ]
    ready: Json = {".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {}}
    assert entries[0]["fieldsV1"] == {"f:status": {"f:conditions": {'k:{"type":"Ready"}': ready}}}


async def test_it_grows_by_a_second_family_and_never_shrinks(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, SINGLE):
        pass
    async with service_cluster(tmp_path, DUAL) as cluster:
        assert (await default_cidr(cluster))["spec"]["cidrs"] == ["10.0.0.0/24", "fd00::/112"]
    async with service_cluster(tmp_path, SINGLE) as cluster:
        assert (await default_cidr(cluster))["spec"]["cidrs"] == ["10.0.0.0/24", "fd00::/112"]


async def test_it_is_made_again_when_somebody_deletes_it(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, SINGLE) as cluster:
        await cluster.cidrs.delete("kubernetes")
        await DefaultServiceCIDR(cluster.cidrs.registry, SINGLE.cluster_ip_ranges).sync()
        assert (await default_cidr(cluster))["spec"] == {"cidrs": ["10.0.0.0/24"]}


async def test_what_somebody_said_of_its_readiness_is_left_alone(tmp_path: Path) -> None:
    async with service_cluster(tmp_path, SINGLE) as cluster:
        controller = DefaultServiceCIDR(cluster.cidrs.registry, SINGLE.cluster_ip_ranges)
        before = await cluster.store.current_revision()
        await controller.sync()
        assert await cluster.store.current_revision() == before
