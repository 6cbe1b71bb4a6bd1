"""deployment-controller and replicaset-controller together on a whole server; the tests play the kubelet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed, running
from pods_that_run import BROKEN, pods_that_run
from prometheus_client import CollectorRegistry
from replicated_workloads import LABELS, Workloads, condition, image_of, names, workload
from skipping_clock import SkippingClock

from pilothouse.client import DeleteOptions, Json, name_of, uid_of
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONTROLLERS = ("deployment", "replicaset")
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("deployments") / "data") as server:
        yield server


@asynccontextmanager
async def running_cluster(server: ControlledServer) -> AsyncIterator[Workloads]:
    cluster = await Workloads.in_new_namespace(server)
    async with managed(server, *CONTROLLERS), pods_that_run(server.client, namespace=cluster.namespace):
        yield cluster


@pytest_asyncio.fixture(loop_scope="module")
async def cluster(server: ControlledServer) -> AsyncIterator[Workloads]:
    async with running_cluster(server) as cluster:
        yield cluster


def sizes(replica_sets: list[Json]) -> dict[str, int]:
    return {image_of(each): each["spec"]["replicas"] for each in replica_sets}


async def test_a_new_deployment_gets_a_replica_set_and_is_complete_when_its_pods_are_available(
    cluster: Workloads,
) -> None:
    created = await cluster.deploy(2)
    done = await cluster.until_complete()
    assert done["metadata"]["annotations"] == {REVISION: "1"}
    assert done["metadata"]["generation"] == 1
    (replica_set,) = (await cluster.replica_sets.list())["items"]
    meta, name = replica_set["metadata"], name_of(replica_set)
    hash_ = meta["labels"]["pod-template-hash"]
    assert name == f"web-{hash_}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {**LABELS, "pod-template-hash": hash_}
    assert meta["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Deployment", uid_of(created), True)
    available, progressing = condition(done, "Available"), condition(done, "Progressing")
    assert (available["status"], available["reason"]) == ("True", "MinimumReplicasAvailable")
    assert (progressing["status"], progressing["reason"]) == ("True", "NewReplicaSetAvailable")
    assert progressing["message"] == f'ReplicaSet "{name}" has successfully progressed.'
    told = await cluster.until_told(f"Scaled up replica set {name} from 0 to 2")
    (event,) = [each for each in told if each["reason"] == "ScalingReplicaSet"]
    assert (event["type"], event["source"]["component"]) == ("Normal", "deployment-controller")


async def test_a_new_template_replaces_the_old_one_within_the_limits_and_is_remembered(cluster: Workloads) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await cluster.deploy(3, strategy=rolling)
    await cluster.until_complete()
    await cluster.set_image("two")
    done = await cluster.until_complete()
    assert done["metadata"]["annotations"][REVISION] == "2"
    assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 0, "two": 3}
    old, new = name_of(await cluster.set_of("one")), name_of(await cluster.set_of("two"))
    await cluster.until_told(
        *(f"Scaled up replica set {new} from {count} to {count + 1}" for count in range(3)),
        *(f"Scaled down replica set {old} from {count + 1} to {count}" for count in range(3)),
    )


async def test_a_template_that_comes_back_gets_the_newest_revision(cluster: Workloads) -> None:
    await cluster.deploy(1)
    await cluster.until_complete()
    await cluster.set_image("two")
    await cluster.until_complete()
    await cluster.set_image("one")
    done = await cluster.until_complete()
    assert done["metadata"]["annotations"][REVISION] == "3"
    replica_set = await cluster.set_of("one", lambda each: each["spec"]["replicas"] == 1)
    assert replica_set["metadata"]["annotations"][REVISION] == "3"
    assert replica_set["metadata"]["annotations"][HISTORY] == "1"
    assert len((await cluster.replica_sets.list())["items"]) == 2


async def test_a_rollback_by_annotation_takes_the_template_back(cluster: Workloads) -> None:
    await cluster.deploy(1)
    await cluster.until_complete()
    await cluster.set_image("two")
    await cluster.until_complete()
    rollback = {"deprecated.deployment.rollback.to": "0"}
    await cluster.deployments.patch("web", {"metadata": {"annotations": rollback}})
    await until(cluster.deployments, "web", lambda found: image_of(found) == "one")
    done = await cluster.until_complete()
    assert done["metadata"]["annotations"] == {REVISION: "3"}
    await cluster.until_told('Rolled back deployment "web" to revision 1')


async def test_a_rollout_that_stands_still_exceeds_its_deadline_and_can_be_undone(server: ControlledServer) -> None:
    clock = SkippingClock()
    manager = ControllerManager(
        server.client, enabled(CONTROLLERS), registry=CollectorRegistry(), client_as=server.client_as, clock=clock
    )
    cluster = await Workloads.in_new_namespace(server)
    async with running(manager), pods_that_run(server.client, namespace=cluster.namespace):
        await cluster.deploy(4)
        await cluster.until_complete()
        await cluster.set_image(BROKEN)
        broken = await cluster.set_of(BROKEN, lambda each: (each.get("status") or {}).get("replicas") == 2)
        stuck = await cluster.until_deployed(lambda status: status.get("unavailableReplicas") == 2)
        assert condition(stuck, "Progressing")["reason"] == "ReplicaSetUpdated"
        assert condition(stuck, "Available")["status"] == "True"
        assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 3, BROKEN: 2}
        clock.skip(602.0)
        late = await until(
            cluster.deployments, "web", lambda each: condition(each, "Progressing").get("status") == "False"
        )
        said = condition(late, "Progressing")
        assert said["reason"] == "ProgressDeadlineExceeded"
        assert said["message"] == f'ReplicaSet "{name_of(broken)}" has timed out progressing.'
        await cluster.set_image("one")
        done = await cluster.until_complete()
        assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"
        assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 4, BROKEN: 0}


async def test_nothing_is_rolled_out_while_a_deployment_is_paused_but_it_scales(cluster: Workloads) -> None:
    await cluster.deploy(1)
    await cluster.until_complete()
    await cluster.deployments.patch("web", {"spec": {"paused": True}})
    paused = await until(
        cluster.deployments, "web", lambda each: condition(each, "Progressing").get("reason") == "DeploymentPaused"
    )
    assert condition(paused, "Progressing")["status"] == "Unknown"
    await cluster.set_image("two")
    await cluster.deployments.patch("web", {"spec": {"replicas": 2}})
    await cluster.until_deployed(lambda status: status.get("availableReplicas") == 2)
    assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 2}
    await cluster.deployments.patch("web", {"spec": {"paused": False}})
    done = await cluster.until_complete()
    assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 0, "two": 2}


async def test_a_deployment_scaled_amidst_a_rollout_scales_its_sets_in_proportion(cluster: Workloads) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await cluster.deploy(10, strategy=rolling)
    await cluster.until_complete()
    await cluster.set_image(BROKEN)
    await until_all(cluster.replica_sets, lambda found: sizes(found) == {"one": 8, BROKEN: 5})
    await cluster.until_deployed(lambda status: status.get("replicas") == 13)
    await cluster.deployments.patch("web", {"spec": {"replicas": 20}})
    await until_all(cluster.replica_sets, lambda found: sizes(found) == {"one": 14, BROKEN: 9})


async def test_recreate_waits_until_the_last_old_pod_is_gone(server: ControlledServer) -> None:
    cluster = await Workloads.in_new_namespace(server)
    async with managed(server, *CONTROLLERS):
        wanted = workload(1, strategy={"type": "Recreate"})
        wanted["spec"]["template"]["spec"]["nodeName"] = "n"
        await cluster.deployments.create(wanted)
        (old,) = await cluster.until_pods(1)
        await cluster.set_image("two")
        await until(cluster.pods, name_of(old), lambda pod: pod["metadata"].get("deletionTimestamp"))
        await cluster.until_deployed(lambda status: status.get("terminatingReplicas") == 1)
        assert sizes((await cluster.replica_sets.list())["items"]) == {"one": 0}
        await cluster.pods.delete(name_of(old), DeleteOptions(grace_period_seconds=0))
        replica_set = await cluster.set_of("two")
        (new,) = await until_all(cluster.pods, lambda found: len(found) == 1 and names(found) != {name_of(old)})
        assert new["metadata"]["ownerReferences"][0]["uid"] == uid_of(replica_set)


async def test_old_sets_beyond_the_history_limit_are_forgotten(cluster: Workloads) -> None:
    await cluster.deploy(1, revisionHistoryLimit=1)
    await cluster.until_complete()
    first = name_of(await cluster.set_of("one"))
    for image in ("two", "three"):
        await cluster.set_image(image)
        await cluster.until_complete()
    await until_gone(cluster.replica_sets, first)
    assert sizes((await cluster.replica_sets.list())["items"]) == {"two": 0, "three": 1}


async def test_orphaned_sets_are_adopted_and_relabelled_sets_are_released(cluster: Workloads) -> None:
    orphan = workload(1)
    orphan["metadata"] |= {"name": "orphan", "labels": LABELS}
    await cluster.replica_sets.create(orphan)
    created = await cluster.deploy(1)
    adopted = await until(cluster.replica_sets, "orphan", lambda each: each["metadata"].get("ownerReferences"))
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == uid_of(created)
    done = await cluster.until_complete()
    assert len((await cluster.replica_sets.list())["items"]) == 1
    await until(cluster.replica_sets, "orphan", lambda each: each["metadata"].get("annotations", {}).get(REVISION))
    assert done["status"]["updatedReplicas"] == 1
    await cluster.replica_sets.patch("orphan", {"metadata": {"labels": {"app": "other"}}})
    await until(cluster.replica_sets, "orphan", lambda each: not each["metadata"].get("ownerReferences"))
    await cluster.set_of("one", lambda each: name_of(each) != "orphan")


async def test_a_set_of_the_same_name_with_another_template_is_a_collision(cluster: Workloads) -> None:
    async with running_cluster(cluster.server) as elsewhere:
        await elsewhere.deploy(1)
        taken = name_of(await elsewhere.set_of("one"))
    stranger = workload(0, "stranger")
    stranger["metadata"] = {"name": taken, "labels": {"app": "other"}}
    stranger["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    stranger["spec"]["template"]["metadata"] = {"labels": {"app": "other"}}
    await cluster.replica_sets.create(stranger)
    await cluster.deploy(1)
    done = await cluster.until_complete()
    assert done["status"]["collisionCount"] == 1
    assert name_of(await cluster.set_of("one")) != taken


async def test_a_failure_of_a_set_is_one_of_its_deployment(cluster: Workloads) -> None:
    quotas = cluster.of("resourcequotas")
    quota = await quotas.create({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await quotas.update_status({**quota, "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}})
    await cluster.deploy(2)
    found = await until(cluster.deployments, "web", lambda each: condition(each, "ReplicaFailure"))
    failure = condition(found, "ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "exceeded quota: few" in failure["message"]
    assert condition(found, "Available")["reason"] == "MinimumReplicasUnavailable"
    await quotas.delete("few")
    await cluster.until_complete()
    await until(cluster.deployments, "web", lambda each: not condition(each, "ReplicaFailure"))


async def test_a_rejected_replica_set_is_reported_by_the_deployment(cluster: Workloads) -> None:
    quotas = cluster.of("resourcequotas")
    hard = {"count/replicasets.apps": "0"}
    quota = await quotas.create({"metadata": {"name": "none"}, "spec": {"hard": hard}})
    await quotas.update_status({**quota, "status": {"hard": hard, "used": hard}})
    await cluster.deploy(1)
    found = await until(
        cluster.deployments, "web", lambda each: condition(each, "Progressing").get("status") == "False"
    )
    said = condition(found, "Progressing")
    assert said["reason"] == "ReplicaSetCreateError"
    assert said["message"].startswith('Failed to create new replica set "web-')
    told = await cluster.until_told(said["message"])
    assert {each["type"] for each in told if each["message"] == said["message"]} == {"Warning"}
    await quotas.delete("none")
    await cluster.until_complete()


async def test_a_rollout_goes_on_after_a_restart_with_no_pod_too_many(server: ControlledServer) -> None:
    cluster = await Workloads.in_new_namespace(server)
    async with pods_that_run(server.client, namespace=cluster.namespace):
        async with managed(server, *CONTROLLERS):
            await cluster.deploy(8)
            await cluster.until_complete()
            await cluster.set_image("two")
            await cluster.set_of("two", lambda each: (each.get("status") or {}).get("availableReplicas"))
        assert len((await cluster.pods.list())["items"]) <= 10
        async with managed(server, *CONTROLLERS):
            await cluster.until_complete()
            assert len((await cluster.pods.list())["items"]) == 8
