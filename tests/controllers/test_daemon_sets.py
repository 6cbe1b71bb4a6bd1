"""daemonset-controller on a real server, whose nodes and kubelets the tests play."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed
from played_pods import AT_ONCE, finish_deletion, pods_of, run_pods, set_phase

from pilothouse.client import Json, ResourceClient, name_of
from pilothouse.controllers.daemon.node_fit import target_node

LABELS = {"app": "agent"}


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server, managed(server, "daemonset"):
        yield server


def sets(server: ControlledServer) -> ResourceClient:
    return server.client.resource("apps/v1", "daemonsets", namespace="default")


def nodes(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "nodes")


def revisions(server: ControlledServer) -> ResourceClient:
    return server.client.resource("apps/v1", "controllerrevisions", namespace="default")


async def add_nodes(server: ControlledServer, *names: str, **labels: str) -> None:
    for name in names:
        await nodes(server).create({"metadata": {"name": name, "labels": labels}})
        await taint(server, name)


async def taint(server: ControlledServer, node: str, *taints: Json) -> None:
    """These taints only, without the one that a new node has until it is known to be ready."""
    await nodes(server).patch(node, {"spec": {"taints": list(taints)}})


def template(image: str = "one", **spec: Any) -> Json:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


async def create(server: ControlledServer, pods: Json | None = None, **spec: Any) -> Json:
    wanted = {"selector": {"matchLabels": LABELS}, "template": pods or template(), **spec}
    return await sets(server).create({"metadata": {"name": "agent"}, "spec": wanted})


async def until_on(server: ControlledServer, *names: str) -> dict[str, Json]:
    """The pods by node, once there is one for each of these nodes, no other, and none is going."""

    def holds(pods: list[Json]) -> bool:
        going = any(pod["metadata"].get("deletionTimestamp") for pod in pods)
        return not going and sorted(str(target_node(pod)) for pod in pods) == sorted(names)

    return {str(target_node(pod)): pod for pod in await until_all(pods_of(server.client), holds)}


async def until_status(server: ControlledServer, **wanted: int) -> Json:
    def holds(found: Json) -> bool:
        status = found.get("status") or {}
        return all(status.get(field, 0) == value for field, value in wanted.items())

    return await until(sets(server), "agent", holds)


async def run_all(server: ControlledServer, pods: Iterable[Json]) -> None:
    """Let each pod run on the node that it was made for."""
    for pod in pods:
        await run_pods(pods_of(server.client), [name_of(pod)], node=str(target_node(pod)))


async def test_every_node_that_fits_gets_a_pod_made_for_it(server: ControlledServer) -> None:
    await add_nodes(server, "n1", "n2", zone="a")
    await add_nodes(server, "n3", zone="b")
    await create(server, template(nodeSelector={"zone": "a"}))
    found = await until_on(server, "n1", "n2")
    (revision,) = (await revisions(server).list())["items"]
    digest = revision["metadata"]["labels"]["controller-revision-hash"]
    assert name_of(revision) == f"agent-{digest}"
    pod = found["n1"]
    assert pod["metadata"]["labels"] == {
        **LABELS,
        "controller-revision-hash": digest,
        "pod-template-generation": "1",
    }
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert {(each["key"].split("/")[1], each["effect"]) for each in pod["spec"]["tolerations"]} >= {
        ("not-ready", "NoExecute"),
        ("unschedulable", "NoSchedule"),
    }
    await run_all(server, found.values())
    await add_nodes(server, "n4", zone="a")
    await until_on(server, "n1", "n2", "n4")
    await until_status(
        server,
        desiredNumberScheduled=3,
        currentNumberScheduled=3,
        numberReady=2,
        numberAvailable=2,
        numberUnavailable=1,
        updatedNumberScheduled=3,
        observedGeneration=1,
    )
    told = ("SuccessfulCreate", f"Created pod: {name_of(pod)}", "daemonset-controller")
    await until_all(server.client.resource("v1", "events", namespace="default"), lambda every: told in _told(every))


def _told(events: list[Json]) -> set[tuple[str, str, str]]:
    return {(each["reason"], each["message"], each["source"]["component"]) for each in events}


async def test_no_schedule_taints_prevent_pods_and_no_execute_taints_evict_pods(server: ControlledServer) -> None:
    await add_nodes(server, "n1", "n2")
    await taint(server, "n2", {"key": "gpu", "effect": "NoSchedule"})
    await create(server)
    await run_all(server, (await until_on(server, "n1")).values())
    await until_status(server, desiredNumberScheduled=1, numberReady=1)
    await taint(server, "n2", {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    await run_all(server, (await until_on(server, "n1", "n2")).values())
    await until_status(server, numberReady=2)
    await taint(server, "n1", {"key": "gpu", "effect": "NoSchedule"})
    await sets(server).patch("agent", {"metadata": {"labels": {"look": "again"}}})
    await until_status(server, desiredNumberScheduled=1, numberMisscheduled=1)
    await taint(server, "n1", {"key": "gpu", "effect": "NoExecute"})
    await until_all(pods_of(server.client), lambda pods: any(pod["metadata"].get("deletionTimestamp") for pod in pods))
    await finish_deletion(pods_of(server.client))
    await until_on(server, "n2")
    await until_status(server, numberMisscheduled=0)


@pytest.mark.parametrize("surge", [False, True])
async def test_an_update_replaces_one_pod_at_a_time(server: ControlledServer, surge: bool) -> None:
    pods, limits = pods_of(server.client), {"maxSurge": 1, "maxUnavailable": 0} if surge else {"maxUnavailable": 1}
    await add_nodes(server, "n1", "n2")
    await create(server, updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits}, revisionHistoryLimit=0)
    old = await until_on(server, "n1", "n2")
    await run_all(server, old.values())
    await until_status(server, numberAvailable=2)
    await sets(server).patch("agent", {"spec": {"template": template("two")}})
    for left in (1, 0):
        new = await until_all(pods, lambda every: [*_waiting(every)] if surge else [*_going(every)])
        assert len(new) == (3 if surge else 2), "one more, or one less, is allowed"
        if not surge:
            await finish_deletion(pods)
            new = await until_all(pods, lambda every: [*_waiting(every)])
        await run_all(server, _waiting(new))
        if surge:
            await until_all(pods, lambda every: [*_going(every)])
            await finish_deletion(pods)
        await until_status(server, updatedNumberScheduled=2 - left, numberAvailable=2)
    await until_all(revisions(server), lambda every: [each["revision"] for each in every] == [2])
    assert {pod["spec"]["containers"][0]["image"] for pod in (await until_on(server, "n1", "n2")).values()} == {"two"}


def _going(pods: Iterable[Json]) -> Iterable[Json]:
    return (pod for pod in pods if pod["metadata"].get("deletionTimestamp"))


def _waiting(pods: Iterable[Json]) -> Iterable[Json]:
    return (pod for pod in pods if not pod["spec"].get("nodeName"))


async def test_with_on_delete_a_pod_is_new_only_when_somebody_deleted_the_old_one(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    await add_nodes(server, "n1", "n2")
    await create(server, updateStrategy={"type": "OnDelete"})
    found = await until_on(server, "n1", "n2")
    await run_all(server, found.values())
    await sets(server).patch("agent", {"spec": {"template": template("two")}})
    await until_status(server, observedGeneration=2, updatedNumberScheduled=0)
    await pods.delete(name_of(found["n1"]), AT_ONCE)
    await until_status(server, updatedNumberScheduled=1)
    found = await until_on(server, "n1", "n2")
    assert [found[node]["spec"]["containers"][0]["image"] for node in ("n1", "n2")] == ["two", "one"]


async def test_a_pod_that_ended_is_made_anew(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    await add_nodes(server, "n1")
    await create(server)
    (first,) = (await until_on(server, "n1")).values()
    await until_status(server, observedGeneration=1)
    await set_phase(pods, name_of(first), "Failed")
    (second,) = await until_all(pods, lambda every: every and name_of(every[0]) != name_of(first))
    await set_phase(pods, name_of(second), "Succeeded")  # that is no failure, and must not wait
    events = server.client.resource("v1", "events", namespace="default")
    told = await until_all(events, lambda every: {"FailedDaemonPod", "SucceededDaemonPod"} <= _reasons(every))
    message = f"Found failed daemon pod default/{name_of(first)} on node n1, will try to kill it"
    assert message in {each["message"] for each in told}


def _reasons(events: Iterable[Json]) -> set[str]:
    return {each["reason"] for each in events}


async def test_going_back_to_a_template_takes_its_revision_up_again(server: ControlledServer) -> None:
    await create(server)
    await until_status(server, observedGeneration=1)
    for generation, image in ((2, "two"), (3, "one")):
        await sets(server).patch("agent", {"spec": {"template": template(image)}})
        await until_status(server, observedGeneration=generation)
    found = await until_all(revisions(server), lambda every: max(each["revision"] for each in every) == 3)
    assert sorted(each["revision"] for each in found) == [2, 3]
