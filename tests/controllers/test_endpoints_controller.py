"""endpoints-controller: services have Endpoints with the addresses of their pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed
from service_pods import ServicesAndPods

from pilothouse.client.rest.options import DeleteOptions
from pilothouse.machinery.objects import Json, annotations_of, labels_of, uid_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = DeleteOptions(grace_period_seconds=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("endpoints")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def there(server: ControlledServer, request: pytest.FixtureRequest) -> AsyncIterator[ServicesAndPods]:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    async with managed(server, "endpoint"):
        yield ServicesAndPods(server.client, namespace)


def shown(endpoints: Json) -> list[dict[str, Any]]:
    """Ports, and who is ready for them and who is not."""
    return [
        {
            "ports": [port["port"] for port in each.get("ports") or ()],
            "ready": [address["ip"] for address in each.get("addresses") or ()],
            "waiting": [address["ip"] for address in each.get("notReadyAddresses") or ()],
        }
        for each in endpoints.get("subsets") or ()
    ]


async def until_shown(there: ServicesAndPods, *desired: tuple[list[int], list[str], list[str]]) -> Json:
    wanted = [{"ports": ports, "ready": ready, "waiting": waiting} for ports, ready, waiting in desired]
    return await until(there.endpoints, "web", lambda found: shown(found) == wanted)


async def test_a_pod_of_a_service_becomes_an_address(there: ServicesAndPods) -> None:
    await there.service("web", ports=[{"name": "http", "port": 80, "targetPort": 8080}])
    pod = await there.pod("a", "10.0.0.1")
    found = await until_shown(there, ([8080], ["10.0.0.1"], []))
    target = {"kind": "Pod", "namespace": there.namespace, "name": "a", "uid": uid_of(pod)}
    assert found["subsets"][0]["addresses"] == [{"ip": "10.0.0.1", "nodeName": "n", "targetRef": target}]
    assert found["subsets"][0]["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert labels_of(found) == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


async def test_addresses_follow_the_state_of_their_pods(there: ServicesAndPods) -> None:
    await there.service("web")
    await there.pod("a", "10.0.0.1", terminationGracePeriodSeconds=30)
    await there.pod("b", "10.0.0.2")
    await until_shown(there, ([8080], ["10.0.0.1", "10.0.0.2"], []))
    await there.set_status("b", "10.0.0.2", ready=False)
    await until_shown(there, ([8080], ["10.0.0.1"], ["10.0.0.2"]))
    await there.pods.delete("a")
    await until_shown(there, ([8080], [], ["10.0.0.2"]))
    await there.pods.delete("b", NOW)
    await until_shown(there)


async def test_pods_that_offer_other_ports_are_in_other_subsets(there: ServicesAndPods) -> None:
    await there.service("web", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81, "targetPort": "http"}])
    await there.pod("a", "10.0.0.1")
    await there.pod("b", "10.0.0.2", containers=[{"name": "c", "image": "i"}])
    await until_shown(there, ([80], ["10.0.0.1", "10.0.0.2"], []), ([8081], ["10.0.0.1"], []))


async def test_a_headless_service_may_have_no_ports(there: ServicesAndPods) -> None:
    await there.service("web", clusterIP="None", ports=None)
    await there.pod("a", "10.0.0.1", hostname="first", subdomain="web")
    found = await until_shown(there, ([], ["10.0.0.1"], []))
    assert found["subsets"][0]["addresses"][0]["hostname"] == "first"
    assert labels_of(found)["service.kubernetes.io/headless"] == ""


async def test_more_addresses_than_endpoints_may_have_are_cut_off(there: ServicesAndPods, monkeypatch: Any) -> None:
    from pilothouse.controllers.endpoint import desired

    monkeypatch.setattr(desired, "MAX_CAPACITY", 2)
    await there.service("web")
    for number in range(3):
        await there.pod(f"p{number}", f"10.0.0.{number}")
    found = await until(
        there.endpoints, "web", lambda each: "endpoints.kubernetes.io/over-capacity" in annotations_of(each)
    )
    assert shown(found) == [{"ports": [8080], "ready": ["10.0.0.0", "10.0.0.1"], "waiting": []}]
    await there.pods.delete("p0", NOW)
    found = await until_shown(there, ([8080], ["10.0.0.1", "10.0.0.2"], []))
    assert "endpoints.kubernetes.io/over-capacity" not in annotations_of(found)


async def test_endpoints_go_with_their_service_and_come_back_without_it_asking(there: ServicesAndPods) -> None:
    await there.service("web")
    first = await until(there.endpoints, "web")
    await there.endpoints.delete("web")
    await until(there.endpoints, "web", lambda found: uid_of(found) != uid_of(first))
    await there.services.delete("web")
    await until_gone(there.endpoints, "web")


async def test_endpoints_of_services_without_selector_are_left_alone(there: ServicesAndPods) -> None:
    await there.service("own", selector=None)
    desired = [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 1}]}]
    await there.endpoints.create({"metadata": {"name": "own"}, "subsets": desired})
    await there.services.patch("own", {"metadata": {"labels": {"changed": "true"}}})
    await there.service("web")
    await until(there.endpoints, "web")
    assert (await there.endpoints.get("own"))["subsets"][0]["addresses"] == [{"ip": "10.9.9.9"}]


async def test_leftover_endpoints_are_deleted_at_startup_except_locks(server: ControlledServer) -> None:
    await server.create_namespace("leftovers")
    there = ServicesAndPods(server.client, "leftovers")
    lock = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    await there.endpoints.create({"metadata": {"name": "lock", "annotations": lock}})
    await there.endpoints.create({"metadata": {"name": "web"}})
    async with managed(server, "endpoint"):
        await until_gone(there.endpoints, "web")
    assert await there.endpoints.get("lock")
