"""replicaset-controller and replicationcontroller-controller on a whole server; the tests play the kubelet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed, running
from pods_that_run import make_ready
from prometheus_client import CollectorRegistry
from replicated_workloads import LABELS, Workloads, condition, names, workload

from pilothouse.client import DeleteOptions, Json, name_of, uid_of
from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("replica-sets") / "data") as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def cluster(server: ControlledServer) -> AsyncIterator[Workloads]:
    async with managed(server, "replicaset", "replicationcontroller"):
        yield await Workloads.in_new_namespace(server)


async def until_status(cluster: Workloads, **counts: int) -> Json:
    def holds(found: Json) -> bool:
        status = found.get("status") or {}
        return all(status.get(name, 0) == count for name, count in counts.items())

    return await until(cluster.replica_sets, "web", holds)


async def test_pods_are_created_owned_counted_and_reported(cluster: Workloads) -> None:
    created = await cluster.replica_sets.create(workload(3))
    found = await until_status(cluster, replicas=3, fullyLabeledReplicas=3, observedGeneration=1)
    assert found["status"]["terminatingReplicas"] == 0
    pods = await cluster.until_pods(3)
    for pod in pods:
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["labels"] == LABELS
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["apiVersion"], owner["uid"]) == ("ReplicaSet", "apps/v1", uid_of(created))
        assert owner["controller"] is owner["blockOwnerDeletion"] is True
    told = await cluster.until_told(*(f"Created pod: {name}" for name in names(pods)))
    assert {(each["reason"], each["type"]) for each in told} == {("SuccessfulCreate", "Normal")}
    assert {each["source"]["component"] for each in told} == {"replicaset-controller"}
    await make_ready(cluster.pods, name_of(pods[0]))
    await until_status(cluster, readyReplicas=1, availableReplicas=1, replicas=3)


async def test_a_pod_that_is_deleted_or_has_failed_is_replaced(cluster: Workloads) -> None:
    await cluster.replica_sets.create(workload(2))
    one, two = names(await cluster.until_pods(2))
    await cluster.pods.delete(one)
    await cluster.pods.patch(two, {"status": {"phase": "Failed"}}, subresource="status")
    pods = await until_all(cluster.pods, lambda found: sum(each["status"]["phase"] == "Pending" for each in found) == 2)
    assert two in names(pods)
    assert one not in names(pods)


async def test_surplus_pods_are_deleted_by_rank(cluster: Workloads) -> None:
    await cluster.replica_sets.create(workload(4))
    ready, cheap, pending, dear = sorted(names(await cluster.until_pods(4)))
    cost = "controller.kubernetes.io/pod-deletion-cost"
    await cluster.pods.patch(cheap, {"metadata": {"annotations": {cost: "-5"}}})
    await cluster.pods.patch(dear, {"metadata": {"annotations": {cost: "5"}}})
    await make_ready(cluster.pods, ready, cheap, dear)
    await until_status(cluster, readyReplicas=3)
    await cluster.replica_sets.patch("web", {"spec": {"replicas": 3}})
    assert names(await cluster.until_pods(3)) == {ready, cheap, dear}
    await cluster.until_told(f"Deleted pod: {pending}")
    await cluster.replica_sets.patch("web", {"spec": {"replicas": 1}})
    assert names(await cluster.until_pods(1)) == {dear}
    await until_status(cluster, replicas=1, observedGeneration=3)


async def test_pods_that_are_about_to_go_are_replaced_and_counted_apart(cluster: Workloads) -> None:
    wanted = workload(1)
    wanted["spec"]["template"]["spec"]["nodeName"] = "n"
    await cluster.replica_sets.create(wanted)
    (pod,) = await cluster.until_pods(1)
    await cluster.pods.delete(name_of(pod))
    await until_status(cluster, replicas=1, terminatingReplicas=1)
    await cluster.pods.delete(name_of(pod), DeleteOptions(grace_period_seconds=0))
    await until_status(cluster, replicas=1, terminatingReplicas=0)


async def test_orphans_are_adopted_and_relabelled_pods_are_released(cluster: Workloads) -> None:
    await cluster.pods.create({"metadata": {"name": "orphan", "labels": LABELS}, "spec": {"containers": _CONTAINERS}})
    created = await cluster.replica_sets.create(workload(2))
    adopted = await until(cluster.pods, "orphan", lambda pod: pod["metadata"].get("ownerReferences"))
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == uid_of(created)
    await until_status(cluster, replicas=2)
    assert len(await cluster.until_pods(2)) == 2
    await cluster.pods.patch("orphan", {"metadata": {"labels": {"app": "other"}}})
    released = await until(cluster.pods, "orphan", lambda pod: not pod["metadata"].get("ownerReferences"))
    assert released["metadata"]["labels"] == {"app": "other"}
    await cluster.until_pods(3)


_CONTAINERS = [{"name": "c", "image": "i"}]


async def test_an_orphan_that_comes_late_is_one_too_many(cluster: Workloads) -> None:
    await cluster.replica_sets.create(workload(1))
    (first,) = await cluster.until_pods(1)
    await make_ready(cluster.pods, name_of(first))
    await until_status(cluster, readyReplicas=1)
    await cluster.pods.create({"metadata": {"name": "late", "labels": LABELS}, "spec": {"containers": _CONTAINERS}})
    await cluster.until_told("Deleted pod: late")
    assert names(await cluster.until_pods(1)) == {name_of(first)}


async def test_quota_rejections_are_reported_until_pods_are_admitted(cluster: Workloads) -> None:
    quotas = cluster.of("resourcequotas")
    quota = await quotas.create({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await quotas.update_status({**quota, "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}})
    await cluster.replica_sets.create(workload(3))
    found = await until(cluster.replica_sets, "web", lambda each: condition(each, "ReplicaFailure"))
    failure = condition(found, "ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "exceeded quota: few" in failure["message"]
    (warning, *_) = [
        each
        for each in await until_all(cluster.of("events"), lambda told: any(e["type"] == "Warning" for e in told))
        if each["type"] == "Warning"
    ]
    assert warning["reason"] == "FailedCreate"
    assert warning["message"].startswith('Error creating: pods "web-')
    await quotas.delete("few")
    await until_status(cluster, replicas=3)
    await until(cluster.replica_sets, "web", lambda each: not condition(each, "ReplicaFailure"))


async def test_a_replication_controller_is_served_the_same_way(cluster: Workloads) -> None:
    controllers = cluster.of("replicationcontrollers")
    wanted = workload(2)
    wanted["spec"]["selector"] = LABELS
    created = await controllers.create(wanted)
    pods = await cluster.until_pods(2)
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in pods} == {uid_of(created)}
    await make_ready(cluster.pods, *names(pods))
    found = await until(controllers, "web", lambda each: each["status"].get("availableReplicas") == 2)
    assert "terminatingReplicas" not in found["status"]
    told = await cluster.until_told(*(f"Created pod: {name}" for name in names(pods)))
    assert {each["source"]["component"] for each in told} == {"replication-controller"}


async def test_pods_are_available_when_they_have_been_ready_for_long_enough(server: ControlledServer) -> None:
    cluster, clock = await Workloads.in_new_namespace(server), FakeClock()
    manager = ControllerManager(
        server.client,
        enabled(["replicaset"]),
        registry=CollectorRegistry(),
        client_as=server.client_as,
        clock=clock,
    )
    async with running(manager):
        await cluster.replica_sets.create(workload(2, minReadySeconds=60))
        one, two = names(await cluster.until_pods(2))
        start = datetime.fromtimestamp(clock.wall(), UTC)
        await make_ready(cluster.pods, one, since=start)
        await make_ready(cluster.pods, two, since=start - timedelta(seconds=70))
        await until_status(cluster, readyReplicas=2, availableReplicas=1)
        await clock.wait_for_timer(60.0)
        clock.advance(60.0)
        await until_status(cluster, readyReplicas=2, availableReplicas=2)


async def test_after_a_restart_no_pod_is_made_twice(server: ControlledServer) -> None:
    cluster = await Workloads.in_new_namespace(server)
    async with managed(server, "replicaset"):
        await cluster.replica_sets.create(workload(30))
        await until_all(cluster.pods, bool)
    async with managed(server, "replicaset"):
        await until_status(cluster, replicas=30)
        await cluster.until_pods(30)
