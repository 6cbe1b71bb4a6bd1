"""statefulset-controller on a real server, whose kubelet the tests play."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed
from played_pods import AT_ONCE, finish_deletion, pods_of, run_pods, set_phase

from pilothouse.client import Json, ResourceClient, name_of

LABELS = {"app": "web"}
CLAIM = {
    "metadata": {"name": "data", "labels": {"tier": "slow"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


@asynccontextmanager
async def with_controller(server: ControlledServer) -> AsyncIterator[None]:
    async with managed(server, "statefulset"):
        yield


def sets(server: ControlledServer) -> ResourceClient:
    return server.client.resource("apps/v1", "statefulsets", namespace="default")


def claims(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "persistentvolumeclaims", namespace="default")


def revisions(server: ControlledServer) -> ResourceClient:
    return server.client.resource("apps/v1", "controllerrevisions", namespace="default")


def template(image: str = "one") -> Json:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


async def create(server: ControlledServer, replicas: int, **spec: Any) -> Json:
    wanted = {"selector": {"matchLabels": LABELS}, "serviceName": "svc", "template": template(), **spec}
    return await sets(server).create({"metadata": {"name": "web"}, "spec": {"replicas": replicas, **wanted}})


async def until_pods(server: ControlledServer, *names: str) -> list[Json]:
    """All pods, once there are just these, none of which is going."""
    pods = pods_of(server.client)
    found = await until_all(pods, lambda every: sorted(map(name_of, every)) == sorted(names) and _none_goes(every))
    return sorted(found, key=name_of)


def _none_goes(pods: list[Json]) -> bool:
    return not any(pod["metadata"].get("deletionTimestamp") for pod in pods)


async def until_going(server: ControlledServer, name: str) -> None:
    await until(pods_of(server.client), name, lambda pod: pod["metadata"].get("deletionTimestamp"))


async def until_status(server: ControlledServer, **wanted: Any) -> Json:
    def holds(found: Json) -> bool:
        status = found.get("status") or {}
        return all(status.get(field, 0) == value for field, value in wanted.items())

    status: Json = (await until(sets(server), "web", holds))["status"]
    return status


async def test_pods_are_made_in_order_each_when_the_one_before_is_ready(server: ControlledServer) -> None:
    async with with_controller(server):
        await create(server, 2)
        (first,) = await until_pods(server, "web-0")
        await until_status(server, replicas=1, readyReplicas=0)
        await run_pods(pods_of(server.client), ["web-0"])
        _, second = await until_pods(server, "web-0", "web-1")
        await run_pods(pods_of(server.client), ["web-1"])
        status = await until_status(server, replicas=2, readyReplicas=2, availableReplicas=2, observedGeneration=1)
        told = ("SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful", "statefulset-controller")
        await until_all(server.client.resource("v1", "events", namespace="default"), lambda every: told in _told(every))
    assert first["metadata"]["generateName"] == "web-"
    assert second["metadata"]["labels"] == {
        **LABELS,
        "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": status["updateRevision"],
        "statefulset.kubernetes.io/pod-name": "web-1",
    }
    assert (second["spec"]["hostname"], second["spec"]["subdomain"]) == ("web-1", "svc")
    (owner,) = second["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == (
        "StatefulSet",
        "web",
        True,
        True,
    )
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 2)


def _told(events: list[Json]) -> set[tuple[str, str, str]]:
    return {(each["reason"], each["message"], each["source"]["component"]) for each in events}


async def test_a_set_shrinks_from_the_highest_ordinal_one_at_a_time(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 3, podManagementPolicy="Parallel", ordinals={"start": 5})
        await until_pods(server, "web-5", "web-6", "web-7")
    await sets(server).delete("web")
    async with with_controller(server):
        for pod in ("web-5", "web-6", "web-7"):
            await pods.patch(pod, {"metadata": {"ownerReferences": None}})
        await run_pods(pods, ["web-5", "web-6", "web-7"])
        await create(server, 3, ordinals={"start": 5})
        await until_status(server, replicas=3, readyReplicas=3)  # they were adopted
        await sets(server).patch("web", {"spec": {"replicas": 1}})
        await until_going(server, "web-7")
        assert not (await pods.get("web-6"))["metadata"].get("deletionTimestamp")
        await finish_deletion(pods)
        await until_going(server, "web-6")
        await finish_deletion(pods)
        await until_status(server, replicas=1)
    assert [name_of(pod) for pod in (await pods.list())["items"]] == ["web-5"]


async def test_an_update_replaces_pods_from_the_highest_down_to_the_partition(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 3, podManagementPolicy="Parallel", updateStrategy={"rollingUpdate": {"partition": 1}})
        await until_pods(server, "web-0", "web-1", "web-2")
        await run_pods(pods, ["web-0", "web-1", "web-2"])
        old = (await until_status(server, readyReplicas=3))["updateRevision"]
        await sets(server).patch("web", {"spec": {"template": template("two")}})
        for name in ("web-2", "web-1"):
            await until_going(server, name)
            await finish_deletion(pods)
            await until_pods(server, "web-0", "web-1", "web-2")
            await run_pods(pods, [name])
        status = await until_status(server, updatedReplicas=2, readyReplicas=3, observedGeneration=2)
        assert (status["currentRevision"], status["currentReplicas"]) == (old, 1)
        labels = [
            pod["metadata"]["labels"]["controller-revision-hash"]
            for pod in await until_pods(server, "web-0", "web-1", "web-2")
        ]
        assert labels == [old, status["updateRevision"], status["updateRevision"]]
        await pods.delete("web-0", AT_ONCE)  # made anew, below the partition it stays as it was
        await until_status(server, replicas=3, readyReplicas=2)
        assert (await pods.get("web-0"))["spec"]["containers"][0]["image"] == "one"
        await run_pods(pods, ["web-0"])
        await sets(server).patch("web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await until_going(server, "web-0")
        await finish_deletion(pods)
        await until_pods(server, "web-0", "web-1", "web-2")
        await run_pods(pods, ["web-0"])
        await until_status(server, updatedReplicas=3, currentReplicas=3, currentRevision=status["updateRevision"])


async def test_a_template_that_was_there_before_gets_the_newest_number(server: ControlledServer) -> None:
    async with with_controller(server):
        await create(server, 0, revisionHistoryLimit=1)
        first = (await until_status(server, observedGeneration=1))["updateRevision"]
        for generation, image in enumerate(("two", "one", "three"), start=2):
            await sets(server).patch("web", {"spec": {"template": template(image)}})
            status = await until_status(server, observedGeneration=generation)
            if image == "one":
                assert status["updateRevision"] == first
                assert (await until(revisions(server), first, lambda each: each["revision"] == 3))["data"]
        found = await until_all(revisions(server), lambda every: len(every) == 2)
    assert sorted(each["revision"] for each in found) == [3, 4]
    newest = max(found, key=lambda each: each["revision"])
    assert name_of(newest) == f"web-{newest['metadata']['labels']['controller.kubernetes.io/hash']}"
    assert newest["data"]["spec"]["template"]["$patch"] == "replace"
    patched = await revisions(server).patch(name_of(newest), {"metadata": {"ownerReferences": None}})
    assert patched["data"] == newest["data"], "others can change what is not the data"
    assert newest["metadata"]["labels"]["app"] == "web"


async def test_ended_pods_are_recreated_and_on_delete_replaces_only_deleted_pods(
    server: ControlledServer,
) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 1, updateStrategy={"type": "OnDelete"})
        (before,) = await until_pods(server, "web-0")
        await set_phase(pods, "web-0", "Failed")
        await until(pods, "web-0", lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"])
        await run_pods(pods, ["web-0"])
        await sets(server).patch("web", {"spec": {"template": template("two")}})
        status = await until_status(server, observedGeneration=2, replicas=1)
        assert status.get("updatedReplicas", 0) == 0
        await pods.delete("web-0", AT_ONCE)
        (after,) = await until_pods(server, "web-0")
    assert after["spec"]["containers"][0]["image"] == "two"


async def test_claims_are_made_from_templates_and_owned_as_the_policy_says(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    async with with_controller(server):
        await create(
            server,
            2,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=[CLAIM],
            persistentVolumeClaimRetentionPolicy=policy,
        )
        (_, second) = await until_pods(server, "web-0", "web-1")
        (volume,) = second["spec"]["volumes"]
        assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
        claim = await until(claims(server), "data-web-1", lambda each: each["metadata"].get("ownerReferences"))
        assert claim["metadata"]["labels"] == {"tier": "slow", **LABELS}
        assert [each["kind"] for each in claim["metadata"]["ownerReferences"]] == ["StatefulSet"]
        await run_pods(pods, ["web-0", "web-1"])
        await until_status(server, readyReplicas=2)
        await sets(server).patch("web", {"spec": {"replicas": 1}})
        claim = await until(claims(server), "data-web-1", lambda each: _owner_kinds(each) == ["Pod"])
        assert claim["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"]
        await until_going(server, "web-1")
        retain = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        await sets(server).patch("web", {"spec": {"persistentVolumeClaimRetentionPolicy": retain}})
        await until(claims(server), "data-web-0", lambda each: not _owner_kinds(each))


def _owner_kinds(obj: Json) -> list[str]:
    return [each["kind"] for each in obj["metadata"].get("ownerReferences") or ()]


async def test_a_lost_pod_label_is_restored_and_a_mismatched_pod_is_released(
    server: ControlledServer,
) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 1)
        await until_pods(server, "web-0")
        await run_pods(pods, ["web-0"])
        label = "statefulset.kubernetes.io/pod-name"
        await pods.patch("web-0", {"metadata": {"labels": {label: None}}})
        await until(pods, "web-0", lambda pod: pod["metadata"]["labels"].get(label) == "web-0")
        await pods.patch("web-0", {"metadata": {"labels": {"app": "other"}}})
        await until(pods, "web-0", lambda pod: not pod["metadata"].get("ownerReferences"))
        await pods.delete("web-0", AT_ONCE)
        await until_pods(server, "web-0")


async def test_a_pod_counts_as_available_only_after_min_ready_seconds(server: ControlledServer) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 2, minReadySeconds=3600)
        await until_pods(server, "web-0")
        await run_pods(pods, ["web-0"], since="2999-01-01T00:00:00Z")
        await until_status(server, readyReplicas=1, availableReplicas=0)
        await sets(server).patch("web", {"spec": {"minReadySeconds": 0}})
        await until_pods(server, "web-0", "web-1")
        await until_status(server, availableReplicas=1)


async def test_a_set_that_is_gone_leaves_its_pods_to_the_garbage_collector(server: ControlledServer) -> None:
    async with with_controller(server):
        await create(server, 1)
        await until_pods(server, "web-0")
        await sets(server).delete("web")
        await until_gone(sets(server), "web")
        await pods_of(server.client).delete("web-0", AT_ONCE)
        await until_gone(pods_of(server.client), "web-0")


async def test_a_parallel_set_of_millions_is_made_in_batches_and_stops_when_it_is_scaled_down(
    server: ControlledServer,
) -> None:
    pods = pods_of(server.client)
    async with with_controller(server):
        await create(server, 20_000_000, podManagementPolicy="Parallel")
        await until_all(pods, lambda every: len(every) >= 20)
        await sets(server).patch("web", {"spec": {"replicas": 1}})
        await until_pods(server, "web-0")
        await until_status(server, observedGeneration=2, replicas=1)
