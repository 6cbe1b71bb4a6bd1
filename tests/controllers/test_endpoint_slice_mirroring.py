"""endpointslicemirroring-controller: Endpoints that users made are mirrored to slices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed
from service_pods import ServicesAndPods

from pilothouse.controllers.config import EndpointConfig
from pilothouse.controllers.context import ControllerConfig
from pilothouse.machinery.objects import Json, annotations_of, labels_of, uid_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 3
SUBSET = {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "http", "port": 80}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("mirrors")) as server:
        config = ControllerConfig(endpoints=EndpointConfig(mirroring_max_endpoints_per_subset=LIMIT))
        yield ControlledServer(server.client, config)


@pytest_asyncio.fixture(loop_scope="module")
async def there(server: ControlledServer, request: pytest.FixtureRequest) -> AsyncIterator[ServicesAndPods]:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    async with managed(server, "endpointslicemirroring"):
        yield ServicesAndPods(server.client, namespace)


async def make(there: ServicesAndPods, *subsets: Json, **metadata: Any) -> Json:
    await there.service("own", selector=None)
    return await there.endpoints.create({"metadata": {"name": "own", **metadata}, "subsets": list(subsets)})


def mirrored(slices: list[Json]) -> dict[str, list[str]]:
    """Addresses by their type."""
    found: dict[str, list[str]] = {}
    for each in slices:
        found.setdefault(each["addressType"], []).extend(one["addresses"][0] for one in each["endpoints"])
    return {family: sorted(addresses) for family, addresses in found.items()}


async def until_mirrored(there: ServicesAndPods, **addresses: list[str]) -> list[Json]:
    return await until_all(there.slices, lambda slices: mirrored(slices) == addresses)


async def until_one(there: ServicesAndPods, holds: Callable[[Json], object]) -> Json:
    return (await until_all(there.slices, lambda slices: len(slices) == 1 and holds(slices[0])))[0]


async def test_endpoints_become_a_slice_for_each_type_of_addresses(there: ServicesAndPods) -> None:
    target = {"kind": "Pod", "name": "a", "namespace": there.namespace}
    first = {"ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": target}
    subset = {
        "addresses": [first, {"ip": "fd00::1"}],
        "notReadyAddresses": [{"ip": "10.0.0.2"}],
        "ports": [{"port": 80, "appProtocol": "http"}],
    }
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}
    endpoints = await make(there, subset, labels={"team": "x"}, annotations=applied)
    slices = await until_mirrored(there, IPv4=["10.0.0.1", "10.0.0.2"], IPv6=["fd00::1"])
    four = next(each for each in slices if each["addressType"] == "IPv4")
    assert labels_of(four) == {
        "team": "x",
        "kubernetes.io/service-name": "own",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert annotations_of(four) == {"kept": "yes"}
    [owner] = four["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Endpoints", uid_of(endpoints))
    assert four["ports"] == [{"name": "", "port": 80, "protocol": "TCP", "appProtocol": "http"}]
    named = {"hostname": "h", "nodeName": "n", "targetRef": target}
    assert sorted(four["endpoints"], key=lambda each: str(each["addresses"])) == [
        {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, **named},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
    ]


async def test_changes_of_endpoints_are_mirrored_in_place(there: ServicesAndPods) -> None:
    await make(there, SUBSET)
    [before] = await until_mirrored(there, IPv4=["10.0.0.1"])
    changed = {**SUBSET, "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}
    await there.endpoints.patch("own", {"subsets": [changed], "metadata": {"labels": {"new": "label"}}})
    after = await until_one(there, lambda each: len(each["endpoints"]) == 2 and labels_of(each).get("new") == "label")
    assert uid_of(after) == uid_of(before)
    await there.endpoints.patch("own", {"subsets": [{**changed, "ports": [{"port": 81}]}]})
    after = await until_one(there, lambda each: each["ports"][0]["port"] == 81)
    assert uid_of(after) == uid_of(before)
    await there.endpoints.patch("own", {"subsets": []})
    await until_mirrored(there)


async def test_foreign_changes_to_mirrored_slices_are_reverted(there: ServicesAndPods) -> None:
    await make(there, SUBSET)
    [found] = await until_mirrored(there, IPv4=["10.0.0.1"])
    forged = [{"addresses": ["10.9.9.9"], "conditions": {"ready": True}}]
    await there.slices.patch(found["metadata"]["name"], {"endpoints": forged})
    await until_mirrored(there, IPv4=["10.0.0.1"])
    await there.slices.delete(found["metadata"]["name"])
    [again] = await until_mirrored(there, IPv4=["10.0.0.1"])
    assert uid_of(again) != uid_of(found)


async def test_mirrors_go_when_the_service_selects_pods_or_goes(there: ServicesAndPods) -> None:
    await make(there, SUBSET)
    await until_mirrored(there, IPv4=["10.0.0.1"])
    await there.services.patch("own", {"spec": {"selector": {"app": "web"}}})
    await until_mirrored(there)
    await there.services.patch("own", {"spec": {"selector": None}})
    await until_mirrored(there, IPv4=["10.0.0.1"])
    await there.services.delete("own")
    await until_mirrored(there)


async def test_endpoints_can_say_that_they_are_not_to_be_mirrored(there: ServicesAndPods) -> None:
    await make(there, SUBSET)
    await until_mirrored(there, IPv4=["10.0.0.1"])
    skip = "endpointslice.kubernetes.io/skip-mirror"
    await there.endpoints.patch("own", {"metadata": {"labels": {skip: "true"}}})
    await until_mirrored(there)
    lock = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    await there.endpoints.patch("own", {"metadata": {"labels": {skip: None}, "annotations": lock}})
    await there.service("other", selector=None)
    await there.endpoints.create({"metadata": {"name": "other"}, "subsets": [SUBSET]})
    found = await until_one(there, bool)
    assert labels_of(found)["kubernetes.io/service-name"] == "other"


async def test_addresses_beyond_the_limit_are_skipped_and_reported(
    there: ServicesAndPods, server: ControlledServer
) -> None:
    addresses = [{"ip": f"10.0.0.{number}"} for number in range(LIMIT + 2)]
    await make(there, {**SUBSET, "addresses": addresses})
    found = await until_one(there, bool)
    assert len(found["endpoints"]) == LIMIT
    events = server.client.resource("v1", "events", namespace=there.namespace)
    [event] = await until_all(events, lambda found: len(found) == 1)
    assert event["reason"] == "TooManyAddressesToMirror"
    assert event["message"] == (
        f"A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped"
    )


async def test_endpoints_that_were_made_anew_own_their_mirrors(server: ControlledServer) -> None:
    await server.create_namespace("anew")
    there = ServicesAndPods(server.client, "anew")
    async with managed(server, "endpointslicemirroring"):
        await make(there, SUBSET)
        await until_mirrored(there, IPv4=["10.0.0.1"])
    await there.endpoints.delete("own")
    again = await there.endpoints.create({"metadata": {"name": "own"}, "subsets": [SUBSET]})
    async with managed(server, "endpointslicemirroring"):
        await until_one(there, lambda each: each["metadata"]["ownerReferences"][0]["uid"] == uid_of(again))
