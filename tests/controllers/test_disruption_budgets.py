"""disruption-controller: what the status of PodDisruptionBudgets says, and the evictions that follow from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.disruption.controller import seconds_until_stale, without_disruption
from pilothouse.controllers.disruption.status import Disrupted, Wanted, disrupted, new_status, scaled
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json, uid_of
from pilothouse.machinery.server_errors import TooManyRequests
from pilothouse.machinery.times import format_time

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
READY = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
LABELS = {"app": "web"}
CONTAINERS = [{"name": "c", "image": "i"}]


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer) -> ControllerManager:
    return ControllerManager(server.client, enabled(["disruption"]), registry=CollectorRegistry())


def of(server: ControlledServer, kind: str, api_version: str = "v1") -> ResourceClient:
    return server.client.resource(api_version, kind, namespace="default")


def budgets(server: ControlledServer) -> ResourceClient:
    return of(server, "poddisruptionbudgets", "policy/v1")


async def budget(server: ControlledServer, **spec: object) -> None:
    wanted = {"selector": {"matchLabels": LABELS}, **spec}
    await budgets(server).create({"metadata": {"name": "web"}, "spec": wanted})


async def pod(server: ControlledServer, name: str, *, ready: bool = True, owner: Json | None = None) -> None:
    meta: Json = {"name": name, "labels": LABELS, "ownerReferences": [owner] if owner else []}
    await of(server, "pods").create({"metadata": meta, "spec": {"containers": CONTAINERS, "nodeName": "n"}})
    if ready:
        await of(server, "pods").patch(name, {"status": READY}, subresource="status")


def reference(obj: Json) -> Json:
    name, kind = obj["metadata"]["name"], obj["kind"]
    return {"apiVersion": obj["apiVersion"], "kind": kind, "name": name, "uid": uid_of(obj), "controller": True}


async def workload(server: ControlledServer, kind: str, replicas: int, owner: Json | None = None) -> Json:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}}
    spec: Json = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    if kind == "statefulsets":
        spec["serviceName"] = "web"
    meta = {"name": "web", "ownerReferences": [reference(owner)] if owner else []}
    return await of(server, kind, "apps/v1").create({"metadata": meta, "spec": spec})


def numbers(found: Json) -> tuple[int, ...]:
    """Healthy, desired, expected, allowed; empty before the controller has looked at it."""
    status = found.get("status") or {}
    names = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    return tuple(status.get(name, 0) for name in names) if status.get("observedGeneration") else ()


async def until_numbers(server: ControlledServer, *wanted: int) -> Json:
    return await until(budgets(server), "web", lambda found: numbers(found) == wanted)


async def test_a_number_that_must_be_available_is_compared_with_the_pods_that_are_ready(
    server: ControlledServer,
) -> None:
    await pod(server, "one")
    await pod(server, "two")
    await pod(server, "three", ready=False)
    async with running(manager(server)):
        await budget(server, minAvailable=1)
        found = await until_numbers(server, 2, 1, 3, 1)
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "True")
        assert (condition["reason"], condition["observedGeneration"]) == ("SufficientPods", 1)
        await of(server, "pods").delete("one")
        found = await until_numbers(server, 1, 1, 3, 0)
        assert found["status"]["conditions"][0]["reason"] == "InsufficientPods"
        await budgets(server).patch("web", {"spec": {"minAvailable": 0}})
        found = await until_numbers(server, 1, 0, 3, 1)
    assert found["status"]["observedGeneration"] == 2


async def test_an_eviction_is_allowed_once_and_then_refused(server: ControlledServer) -> None:
    for name in ("one", "two"):
        await pod(server, name)
    await budget(server, minAvailable=1)
    async with running(manager(server)):
        await until_numbers(server, 2, 1, 2, 1)
        await of(server, "pods").create({"metadata": {"name": "one"}}, name="one", subresource="eviction")
        with pytest.raises(TooManyRequests):
            await of(server, "pods").create({"metadata": {"name": "two"}}, name="two", subresource="eviction")
        await until_numbers(server, 1, 1, 2, 0)
        await until(budgets(server), "web", lambda found: not found["status"].get("disruptedPods"))


@pytest.mark.parametrize("kind", ["statefulsets", "replicasets"])
async def test_percentages_are_relative_to_the_scale_of_the_controller(server: ControlledServer, kind: str) -> None:
    owner = await workload(server, kind, 5)
    await pod(server, "one", owner=reference(owner))
    await pod(server, "two", owner=reference(owner))
    await budget(server, maxUnavailable="50%")
    async with running(manager(server)):
        await until_numbers(server, 2, 2, 5, 0)


async def test_the_sets_of_a_deployment_count_as_the_deployment(server: ControlledServer) -> None:
    deployment = await workload(server, "deployments", 4)
    replica_set = await workload(server, "replicasets", 3, deployment)
    await pod(server, "one", owner=reference(replica_set))
    await budget(server, minAvailable="50%")
    async with running(manager(server)):
        await until_numbers(server, 1, 2, 4, 0)


async def test_a_controller_that_is_not_there_allows_nothing_and_says_why(server: ControlledServer) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u", "controller": True}
    await pod(server, "one", owner=owner)
    await budget(server, maxUnavailable=1)
    async with running(manager(server)):
        found = await until(budgets(server), "web", lambda each: (each.get("status") or {}).get("conditions"))
        await until(of(server, "events"), await event_name(server, "CalculateExpectedPodCountFailed"))
    (condition,) = found["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
    assert condition["message"] == 'found no controllers for pod "one"'
    assert found["status"]["disruptionsAllowed"] == 0


async def event_name(server: ControlledServer, reason: str) -> str:
    """Of the first event with the reason, once there is one."""
    events = of(server, "events")
    async with await events.watch() as watch:
        async for event in watch:
            if event.object.get("reason") == reason:
                return str(event.object["metadata"]["name"])
    raise AssertionError(f"nobody said {reason}")


async def test_unmanaged_pods_are_reported(server: ControlledServer) -> None:
    await pod(server, "lonely")
    await budget(server, maxUnavailable="10%")
    async with running(manager(server)):
        await until_numbers(server, 1, 0, 0, 0)
        name = await event_name(server, "UnmanagedPods")
    assert "were found to be unmanaged" in (await of(server, "events").get(name))["message"]


async def test_a_pod_that_was_to_be_disrupted_long_ago_no_longer_is(server: ControlledServer) -> None:
    await pod(server, "one")
    long_ago = format_time(datetime.now(UTC) - timedelta(hours=1))
    target = {"type": "DisruptionTarget", "status": "True", "reason": "Eviction", "lastTransitionTime": long_ago}
    status = {"conditions": [*READY["conditions"], target]}
    await of(server, "pods").patch("one", {"status": status}, subresource="status")

    def is_over(found: Json) -> bool:
        return any(each["type"] == "DisruptionTarget" and each["status"] == "False" for each in conditions(found))

    def conditions(found: Json) -> list[Json]:
        return list(found["status"]["conditions"])

    async with running(manager(server)):
        await until(of(server, "pods"), "one", is_over)


@pytest.mark.parametrize(
    ("value", "total", "result"), [(3, 10, 3), ("50%", 5, 3), ("0%", 5, 0), ("100%", 5, 5), ("1%", 5, 1), ("30%", 0, 0)]
)
def test_percentages_are_rounded_up(value: int | str, total: int, result: int) -> None:
    assert scaled(value, total) == result


def test_evicted_pods_are_remembered_for_two_minutes_at_most() -> None:
    fresh, old = format_time(NOW - timedelta(seconds=60)), format_time(NOW - timedelta(seconds=121))
    said = {"fresh": fresh, "old": old, "deleted": fresh, "unknown": fresh}
    pods: list[Json] = [{"metadata": {"name": name}} for name in ("fresh", "old", "quiet")]
    pods.append({"metadata": {"name": "deleted", "deletionTimestamp": fresh}})
    found = disrupted(pods, {"status": {"disruptedPods": said}}, NOW)
    assert found.pods == {"fresh": fresh}
    assert [each["metadata"]["name"] for each in found.overdue] == ["old"]
    assert found.recheck == timedelta(seconds=60)


def test_the_time_of_the_condition_moves_only_with_its_status() -> None:
    before = {"type": "DisruptionAllowed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    obj: Json = {"metadata": {"generation": 3}, "status": {"conditions": [{"type": "Other"}, before]}}
    allowed = new_status(obj, Wanted(2, 1), healthy=2, evicted=Disrupted({}), now=NOW)["conditions"]
    refused = new_status(obj, Wanted(2, 2), healthy=2, evicted=Disrupted({}), now=NOW)["conditions"]
    assert [each["type"] for each in allowed] == ["Other", "DisruptionAllowed"]
    assert allowed[1]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert refused[1]["lastTransitionTime"] == format_time(NOW)


@pytest.mark.parametrize(
    ("condition", "seconds"),
    [
        ({}, 90.0),
        ({"lastTransitionTime": format_time(NOW - timedelta(hours=1))}, 0.0),
        ({"status": "False"}, None),
        ({"reason": "TerminationByKubelet"}, None),
    ],
)
def test_a_disruption_is_stale_after_two_minutes_unless_a_kubelet_does_it(
    condition: Json, seconds: float | None
) -> None:
    since = format_time(NOW - timedelta(seconds=30))
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": since, **condition}
    found: Json = {"metadata": {}, "status": {"conditions": [target]}}
    assert seconds_until_stale(found, NOW) == seconds
    assert without_disruption(found, NOW)["status"]["conditions"] == [
        {"type": "DisruptionTarget", "status": "False", "lastTransitionTime": format_time(NOW)}
    ]
