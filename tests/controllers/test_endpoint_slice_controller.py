"""endpointslice-controller: services have slices with the addresses of their pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed
from service_pods import ServicesAndPods

from pilothouse.client.rest.options import DeleteOptions
from pilothouse.controllers.config import EndpointConfig
from pilothouse.controllers.context import ControllerConfig
from pilothouse.machinery.objects import Json, annotations_of, labels_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = DeleteOptions(grace_period_seconds=0)
LIMIT = 3
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("slices")) as server:
        await ServicesAndPods(server.client, "default").node("n", zone="a")
        await ServicesAndPods(server.client, "default").node("m", zone="b")
        config = ControllerConfig(endpoints=EndpointConfig(max_endpoints_per_slice=LIMIT))
        yield ControlledServer(server.client, config)


@pytest_asyncio.fixture(loop_scope="module")
async def there(server: ControlledServer, request: pytest.FixtureRequest) -> AsyncIterator[ServicesAndPods]:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    async with managed(server, "endpointslice"):
        yield ServicesAndPods(server.client, namespace)


def ready_addresses(slices: list[Json]) -> set[str]:
    return {
        address
        for each in slices
        for endpoint in each["endpoints"] or ()
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    }


async def until_ready(there: ServicesAndPods, *addresses: str) -> list[Json]:
    return await until_all(there.slices, lambda slices: slices and ready_addresses(slices) == {*addresses})


async def until_one(there: ServicesAndPods, holds: Callable[[Json], object]) -> Json:
    return (await until_all(there.slices, lambda slices: len(slices) == 1 and holds(slices[0])))[0]


def conditions(endpoint_slice: Json) -> dict[str, Any]:
    found: dict[str, Any] = (endpoint_slice["endpoints"] or [{}])[0].get("conditions", {})
    return found


async def test_a_pod_of_a_service_becomes_an_endpoint(there: ServicesAndPods) -> None:
    service = await there.service("web")
    pod = await there.pod("a", "10.0.0.1")
    [found] = await until_ready(there, "10.0.0.1")
    assert found["metadata"]["name"].startswith("web-")
    assert labels_of(found) == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Service", service["metadata"]["uid"], True)
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert found["addressType"] == "IPv4"
    namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
    assert found["endpoints"] == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": namespace, "name": "a", "uid": uid},
            "nodeName": "n",
            "zone": "a",
        }
    ]


async def test_a_service_without_pods_has_one_empty_slice_that_is_used_again(there: ServicesAndPods) -> None:
    await there.service("web")
    empty = await until_one(there, lambda each: not each["endpoints"])
    assert annotations_of(empty)[TRIGGER_TIME]
    await there.pod("a", "10.0.0.1")
    [filled] = await until_ready(there, "10.0.0.1")
    assert filled["metadata"]["uid"] == empty["metadata"]["uid"]
    await there.pods.delete("a", NOW)
    emptied = await until_one(there, lambda each: not each["endpoints"])
    assert emptied["metadata"]["uid"] == empty["metadata"]["uid"]


async def test_endpoints_follow_the_state_of_their_pods(there: ServicesAndPods) -> None:
    await there.service("web")
    await there.pod("a", "10.0.0.1", terminationGracePeriodSeconds=30)
    await until_ready(there, "10.0.0.1")
    await there.set_status("a", "10.0.0.1", ready=False)
    await until_one(there, lambda each: conditions(each) == {"ready": False, "serving": False, "terminating": False})
    await there.set_status("a", "10.0.0.1")
    await until_ready(there, "10.0.0.1")
    await there.pods.delete("a")
    await until_one(there, lambda each: conditions(each) == {"ready": False, "serving": True, "terminating": True})
    await there.set_status("a", "10.0.0.1", phase="Succeeded")
    await until_one(there, lambda each: not each["endpoints"])


async def test_pods_join_and_leave_by_their_labels(there: ServicesAndPods) -> None:
    await there.service("web", selector={"app": "web", "tier": "front"})
    await there.pod("a", "10.0.0.1", labels={"app": "web"})
    await there.pod("b", "10.0.0.2", labels={"app": "web", "tier": "front"})
    await until_ready(there, "10.0.0.2")
    await there.pods.patch("a", {"metadata": {"labels": {"tier": "front"}}})
    await until_ready(there, "10.0.0.1", "10.0.0.2")
    await there.pods.patch("b", {"metadata": {"labels": {"tier": "back"}}})
    await until_ready(there, "10.0.0.1")
    await there.services.patch("web", {"spec": {"selector": {"tier": "back"}}})
    await until_ready(there, "10.0.0.2")


async def test_many_pods_are_spread_over_slices_within_the_limit(there: ServicesAndPods) -> None:
    await there.service("web")
    names = [f"p{number}" for number in range(LIMIT * 2 + 1)]
    for number, name in enumerate(names):
        await there.pod(name, f"10.0.0.{number}")
    slices = await until_ready(there, *(f"10.0.0.{number}" for number in range(len(names))))
    assert all(len(each["endpoints"]) <= LIMIT for each in slices)
    for name in names[1:]:
        await there.pods.delete(name, NOW)
    [last] = await until_ready(there, "10.0.0.0")
    assert len(last["endpoints"]) == 1


async def test_each_number_of_a_named_port_has_its_own_slice(there: ServicesAndPods) -> None:
    await there.service("web", ports=[{"name": "web", "port": 80, "targetPort": "http", "appProtocol": "h2c"}])
    await there.pod("a", "10.0.0.1")
    other = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 9000}]}
    await there.pod("b", "10.0.0.2", containers=[other])
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "ports": other["ports"]}
    await there.pod("c", "10.0.0.3", containers=[{"name": "c", "image": "i"}], initContainers=[sidecar])
    slices = await until_ready(there, "10.0.0.1", "10.0.0.2", "10.0.0.3")
    ports = {each["ports"][0]["port"]: len(each["endpoints"]) for each in slices}
    assert ports == {8081: 1, 9000: 2}
    assert {each["ports"][0]["appProtocol"] for each in slices} == {"h2c"}


async def test_a_headless_service_names_its_pods(there: ServicesAndPods) -> None:
    await there.service("web", clusterIP="None", ports=None)
    await there.pod("a", "10.0.0.1", hostname="first", subdomain="web")
    [found] = await until_ready(there, "10.0.0.1")
    assert labels_of(found)["service.kubernetes.io/headless"] == ""
    assert found["endpoints"][0]["hostname"] == "first"
    assert not found["ports"]


async def test_a_service_may_publish_pods_that_are_not_ready_and_on_no_node(there: ServicesAndPods) -> None:
    await there.service("web", publishNotReadyAddresses=True)
    await there.pod("a", node="")
    await there.set_status("a", "10.0.0.1", ready=False)
    [found] = await until_ready(there, "10.0.0.1")
    assert conditions(found) == {"ready": True, "serving": False, "terminating": False}


async def test_a_pod_on_a_node_that_is_not_there_waits_for_it(there: ServicesAndPods, server: ControlledServer) -> None:
    await there.service("web")
    await there.pod("a", "10.0.0.1")
    await there.pod("b", "10.0.0.2", node="late")
    await until_ready(there, "10.0.0.1")
    events = server.client.resource("v1", "events", namespace=there.namespace)
    [event] = await until_all(events, lambda found: len(found) == 1)
    assert event["reason"] == "FailedToUpdateEndpointSlices"
    namespace = event["metadata"]["namespace"]
    assert event["message"] == (
        f"Error updating Endpoint Slices for Service {namespace}/web:"
        f" skipping Pod b for Service {namespace}/web: Node late Not Found"
    )
    await there.node("late", ready=False)
    await until_ready(there, "10.0.0.1", "10.0.0.2")


async def test_service_labels_are_propagated_except_reserved_labels(there: ServicesAndPods) -> None:
    await there.service("web")
    await until_one(there, bool)
    labels = {"team": "x", "kubernetes.io/service-name": "forged"}
    await there.services.patch("web", {"metadata": {"labels": labels}})
    found = await until_one(there, lambda each: labels_of(each).get("team") == "x")
    assert labels_of(found)["kubernetes.io/service-name"] == "web"


async def test_foreign_changes_to_slices_are_reverted(there: ServicesAndPods) -> None:
    await there.service("web")
    await there.pod("a", "10.0.0.1")
    [found] = await until_ready(there, "10.0.0.1")
    forged = [{"addresses": ["10.9.9.9"], "conditions": {"ready": True}}]
    await there.slices.patch(found["metadata"]["name"], {"endpoints": forged})
    await until_ready(there, "10.0.0.1")
    await there.slices.delete(found["metadata"]["name"])
    [again] = await until_ready(there, "10.0.0.1")
    assert again["metadata"]["uid"] != found["metadata"]["uid"]


def zones(each: Json) -> list[str]:
    return _hints(each, "forZones")


def nodes(each: Json) -> list[str]:
    return _hints(each, "forNodes")


def _hints(each: Json, kind: str) -> list[str]:
    hints = [one.get("hints") or {} for one in each["endpoints"] or ()]
    return sorted(hint["name"] for found in hints for hint in found.get(kind, ()))


async def test_traffic_that_shall_stay_close_has_hints(there: ServicesAndPods) -> None:
    await there.service("web", trafficDistribution="PreferSameZone")
    await there.pod("a", "10.0.0.1")
    await there.pod("b", "10.0.0.2", node="m")

    await until_one(there, lambda each: zones(each) == ["a", "b"])
    await there.services.patch("web", {"spec": {"trafficDistribution": "PreferSameNode"}})

    await until_one(there, lambda each: nodes(each) == ["m", "n"])
    await there.services.patch("web", {"spec": {"trafficDistribution": None}})
    await until_one(there, lambda each: not any("hints" in one for one in each["endpoints"] or ()))


async def test_topology_aware_hints_divide_endpoints_by_the_cpu_of_zones(there: ServicesAndPods) -> None:
    await there.service("web", annotations={"service.kubernetes.io/topology-mode": "Auto"})
    await there.pod("a", "10.0.0.1")
    await there.pod("b", "10.0.0.2")

    await until_one(there, lambda each: zones(each) == ["a", "b"])  # both pods are in zone a, and half the CPU in b
    await there.pods.delete("b", NOW)
    await until_one(there, lambda each: len(each["endpoints"] or ()) == 1 and not zones(each))


async def test_services_without_selector_and_external_names_are_left_alone(there: ServicesAndPods) -> None:
    await there.service("own", selector=None)
    await there.service("outside", type="ExternalName", externalName="example.com")
    await there.service("web")
    slices = await until_all(there.slices, bool)
    assert {labels_of(each)["kubernetes.io/service-name"] for each in slices} == {"web"}


async def test_changes_during_downtime_are_applied_at_startup(server: ControlledServer) -> None:
    await server.create_namespace("restarted")
    there = ServicesAndPods(server.client, "restarted")
    async with managed(server, "endpointslice"):
        await there.service("web")
        await there.pod("a", "10.0.0.1")
        before = await until_ready(there, "10.0.0.1")
    await there.pods.delete("a", NOW)
    await there.pod("b", "10.0.0.2")
    async with managed(server, "endpointslice"):
        after = await until_ready(there, "10.0.0.2")
    assert [each["metadata"]["uid"] for each in after] == [each["metadata"]["uid"] for each in before]
