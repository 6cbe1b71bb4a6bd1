"""horizontal-pod-autoscaler-controller: workloads are scaled by what the metrics APIs say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed
from metrics_apis import MetricsAPIs, metrics_apis

from pilothouse.client import Client, Json, ResourceClient
from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.context import ControllerConfig
from pilothouse.kinds.conditions import find_condition

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG_AGO = "2020-01-01T00:00:00Z"
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]
LABELS = {"app": "web"}
CPU: Json = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}


@dataclass(frozen=True)
class Autoscaled:
    client: Client
    namespace: str
    metrics: MetricsAPIs

    def of(self, api: str, plural: str) -> ResourceClient:
        return self.client.resource(api, plural, namespace=self.namespace)

    @property
    def autoscalers(self) -> ResourceClient:
        return self.of("autoscaling/v2", "horizontalpodautoscalers")

    @property
    def workloads(self) -> ResourceClient:
        return self.of("apps/v1", "replicasets")

    async def workload(self, replicas: int) -> None:
        """A workload with as many pods, which run and have asked for 100m of processor time each."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
        await self.workloads.create({"metadata": {"name": "web"}, "spec": spec})
        await self.workloads.patch("web", {"status": {"replicas": replicas}}, subresource="status")
        pods = self.of("v1", "pods")
        for number in range(replicas):
            meta = {"name": f"p{number}", "labels": LABELS}
            await pods.create({"metadata": meta, "spec": {"containers": [container]}})
            status = {"phase": "Running", "startTime": LONG_AGO, "conditions": READY}
            await pods.patch(f"p{number}", {"status": status}, subresource="status")

    async def autoscaler(self, *metrics: Json, name: str = "a", **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
        given = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": [*metrics], **spec}
        await self.autoscalers.create({"metadata": {"name": name}, "spec": given})

    async def until_scaled(self, replicas: int) -> None:
        await until(self.workloads, "web", lambda found: found["spec"]["replicas"] == replicas)

    async def until_status(self, holds: Callable[[Json], object]) -> Json:
        status: Json = (await until(self.autoscalers, "a", lambda found: holds(found.get("status") or {})))["status"]
        return status

    async def until_condition(self, type_: str, reason: str) -> Json:
        def says(found: Json) -> bool:
            return (find_condition(found, type_) or {}).get("reason") == reason

        found = find_condition(await until(self.autoscalers, "a", says), type_)
        assert found is not None
        return found

    async def until_event(self, reason: str) -> Json:
        events = self.of("v1", "events")
        found = await until_all(events, lambda events: any(each["reason"] == reason for each in events))
        return next(each for each in found if each["reason"] == reason)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def metrics(server: ControlledServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MetricsAPIs]:
    async with metrics_apis(server.client, tmp_path_factory.mktemp("metrics")) as apis:
        yield apis


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("autoscalers")) as server:
        quick = AutoscalerConfig(sync_period=0.05, downscale_stabilization=0.0)
        server = replace(server, config=ControllerConfig(autoscaler=quick))
        async with managed(server, "horizontalpodautoscaling"):
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def there(
    server: ControlledServer, metrics: MetricsAPIs, request: pytest.FixtureRequest
) -> AsyncIterator[Autoscaled]:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    there = Autoscaled(server.client, namespace, metrics)
    yield there
    for found in (await there.autoscalers.list())["items"]:
        await there.autoscalers.delete(found["metadata"]["name"])


async def test_a_workload_grows_when_its_pods_use_more_than_they_should(there: Autoscaled) -> None:
    await there.workload(2)
    there.metrics.use(there.namespace, p0="90m", p1="60m")
    await there.autoscaler({"type": "Resource", "resource": CPU})
    await there.until_scaled(3)
    status = await there.until_status(lambda status: status.get("lastScaleTime"))
    [current] = status["currentMetrics"]
    assert current == {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 75, "averageValue": "75m"}},
    }
    event = await there.until_event("SuccessfulRescale")
    told = "New size: 3; reason: cpu resource utilization (percentage of request) above target"
    assert (event["type"], event["message"]) == ("Normal", told)
    assert event["source"] == {"component": "horizontal-pod-autoscaler"}
    active = await there.until_condition("ScalingActive", "ValidMetricFound")
    assert active["message"] == (
        "the HPA was able to successfully calculate a replica count from "
        "cpu resource utilization (percentage of request)"
    )


async def test_a_workload_shrinks_as_far_as_it_may(there: Autoscaled) -> None:
    await there.workload(4)
    there.metrics.use(there.namespace, p0="1m", p1="1m", p2="1m", p3="1m")
    await there.autoscaler({"type": "Resource", "resource": CPU}, minReplicas=2)
    await there.until_scaled(2)
    assert (await there.until_event("SuccessfulRescale"))["message"] == "New size: 2; reason: All metrics below target"
    limited = await there.until_condition("ScalingLimited", "TooFewReplicas")
    assert limited["status"] == "True"
    assert limited["message"] == "the desired replica count is less than the minimum replica count"


async def test_unavailable_metrics_are_reported_and_prevent_scaling(there: Autoscaled) -> None:
    await there.workload(2)
    await there.autoscaler({"type": "Resource", "resource": CPU})
    active = await there.until_condition("ScalingActive", "FailedGetResourceMetric")
    why = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: "
        "unable to fetch metrics from resource metrics API: no such metric"
    )
    assert active["status"] == "False"
    assert active["message"] == f"the HPA was unable to compute the replica count: {why}"
    assert (await there.until_event("FailedGetResourceMetric"))["message"] == why
    event = await there.until_event("FailedComputeMetricsReplicas")
    assert event["message"] == (
        f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {why}"
    )
    assert (await there.workloads.get("web"))["spec"]["replicas"] == 2


async def test_the_highest_of_all_metrics_counts(there: Autoscaled) -> None:
    await there.workload(2)
    namespace, named = there.namespace, {"selector": {"matchLabels": {"queue": "q"}}}
    there.metrics.say(f"namespaces/{namespace}/pods/*/qps", "10", "12")
    there.metrics.say(f"namespaces/{namespace}/services/front/hits", "90")
    there.metrics.say(f"namespaces/{namespace}/backlog", "30", "31")
    front = {"apiVersion": "v1", "kind": "Service", "name": "front"}
    await there.autoscaler(
        {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "11"}}},
        {
            "type": "Object",
            "object": {
                "describedObject": front,
                "metric": {"name": "hits"},
                "target": {"type": "Value", "value": "60"},
            },
        },
        {
            "type": "External",
            "external": {
                "metric": {"name": "backlog", **named},
                "target": {"type": "AverageValue", "averageValue": "15250m"},
            },
        },
    )
    await there.until_scaled(4)
    status = await there.until_status(lambda status: status.get("lastScaleTime"))
    pods, of_object, external = status["currentMetrics"]
    assert pods["pods"]["current"] == {"averageValue": "11"}
    assert of_object["object"]["current"] == {"value": "90"}
    assert external["external"]["current"] == {"averageValue": "30500m"}
    event = await there.until_event("SuccessfulRescale")
    shown = "&LabelSelector{MatchLabels:map[string]string{queue: q,},MatchExpressions:[]LabelSelectorRequirement{},}"
    assert event["message"] == f"New size: 4; reason: external metric backlog({shown}) above target"
    asked = next(each for each in there.metrics.asked if each.endswith("backlog?labelSelector=queue%3Dq"))
    assert asked.startswith("/apis/external.metrics.k8s.io/v1beta1/")


async def test_a_container_resource_metric_uses_one_container(there: Autoscaled) -> None:
    await there.workload(1)
    there.metrics.use(there.namespace, p0="100m")
    await there.autoscaler({"type": "ContainerResource", "containerResource": {**CPU, "container": "c"}})
    await there.until_scaled(2)
    event = await there.until_event("SuccessfulRescale")
    assert event["message"] == (
        "New size: 2; reason: cpu container resource utilization (percentage of request) above target"
    )


async def test_a_workload_outside_the_limits_is_scaled_into_the_limits(there: Autoscaled) -> None:
    await there.workload(5)
    await there.autoscaler({"type": "Resource", "resource": CPU}, maxReplicas=3)
    await there.until_scaled(3)
    event = await there.until_event("SuccessfulRescale")
    assert event["message"] == "New size: 3; reason: Current number of replicas above Spec.MaxReplicas"


async def test_a_workload_without_replicas_is_left_alone(there: Autoscaled) -> None:
    await there.workload(0)
    await there.autoscaler({"type": "Resource", "resource": CPU})
    active = await there.until_condition("ScalingActive", "ScalingDisabled")
    assert active["message"] == "scaling is disabled since the replica count of the target is zero"


async def test_a_missing_target_is_reported(there: Autoscaled) -> None:
    await there.autoscaler({"type": "Resource", "resource": CPU})
    able = await there.until_condition("AbleToScale", "FailedGetScale")
    assert able["message"] == (
        'the HPA controller was unable to get the target\'s current scale: replicasets.apps "web" not found'
    )
    assert (await there.until_event("FailedGetScale"))["type"] == "Warning"


async def test_two_autoscalers_of_the_same_pods_do_nothing(there: Autoscaled) -> None:
    await there.workload(1)
    there.metrics.use(there.namespace, p0="50m")
    await there.autoscaler({"type": "Resource", "resource": CPU})
    await there.autoscaler({"type": "Resource", "resource": CPU}, name="b")
    active = await there.until_condition("ScalingActive", "AmbiguousSelector")
    shown = f"[{there.namespace}/a {there.namespace}/b]"
    assert active["message"] == f"pods by selector app=web are controlled by multiple HPAs: {shown}"
