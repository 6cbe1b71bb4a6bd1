"""A server put back to a snapshot while its controllers, its scheduler and its nodes are at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from whole_server import create_config_map, whole_server

from pilothouse.client import Client, Json
from pilothouse.testing import API, StoredSnapshot

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
_LONG_ENOUGH = 300
"""Turns of the event loop in which a controller that were to act upon the past would."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="running")
async def _running() -> AsyncIterator[tuple[API, Client, StoredSnapshot]]:
    async with whole_server(controllers="*", simulated_nodes=2, authorization_mode="RBAC", scheduler=True) as api:
        client = api.client(in_process=True)
        for node in ("node-1", "node-2"):
            await until(client.resource("v1", "nodes"), node, _is_ready)
        await until(client.resource("v1", "serviceaccounts", namespace="default"), "default")
        yield api, client, await api.snapshot()


@pytest_asyncio.fixture(loop_scope="module", name="api")
async def _api(running: tuple[API, Client, StoredSnapshot]) -> AsyncIterator[API]:
    api, _, start = running
    yield api
    await api.restore(start)


@pytest_asyncio.fixture(loop_scope="module", name="client")
async def _client(running: tuple[API, Client, StoredSnapshot]) -> Client:
    return running[1]


async def test_pods_of_the_past_are_gone_and_nobody_makes_them_again(api: API, client: Client) -> None:
    before = await api.snapshot()
    await _deploy(api, replicas=4)
    await until(client.resource("apps/v1", "deployments", namespace="default"), "web", lambda it: _ready(it) == 4)
    await api.restore(before)
    await _nothing_differs(api, before)


async def test_work_that_is_under_way_is_not_finished(api: API, client: Client) -> None:
    before = await api.snapshot()
    await _deploy(api, replicas=4)
    await until(
        client.resource("apps/v1", "deployments", namespace="default"), "web", lambda it: it["status"].get("replicas")
    )
    await api.restore(before)
    await _nothing_differs(api, before)


async def test_a_deployment_goes_back_to_the_pods_that_it_had(api: API, client: Client) -> None:
    deployments = client.resource("apps/v1", "deployments", namespace="default")
    await _deploy(api, replicas=2)
    await until(deployments, "web", lambda it: _ready(it) == 2)
    before = await api.snapshot()
    names = {pod["metadata"]["name"] for pod in (await api.request("GET", PODS)).json["items"]}
    await deployments.patch("web", {"spec": {"replicas": 5}})
    await until(deployments, "web", lambda it: _ready(it) == 5)
    await api.restore(before)
    await _turns()
    assert {pod["metadata"]["name"] for pod in (await api.request("GET", PODS)).json["items"]} == names
    await deployments.patch("web", {"spec": {"replicas": 3}})
    await until(deployments, "web", lambda it: _ready(it) == 3)


async def test_a_namespace_that_was_deleted_is_back_with_what_was_in_it(api: API, client: Client) -> None:
    namespaces = client.resource("v1", "namespaces")
    await namespaces.create({"metadata": {"name": "team"}})
    await until(client.resource("v1", "serviceaccounts", namespace="team"), "default")
    await create_config_map(api, "a", namespace="team")
    before = await api.snapshot()
    await namespaces.delete("team")
    await api.restore(before)
    await _turns()
    assert (await namespaces.get("team"))["status"]["phase"] == "Active"
    assert (await api.request("GET", "/api/v1/namespaces/team/configmaps/a")).status == 200
    await create_config_map(api, "b", namespace="team")


async def test_rights_are_those_of_the_snapshot(api: API, client: Client) -> None:
    ann, bindings = api.as_user("ann"), client.resource("rbac.authorization.k8s.io/v1", "clusterrolebindings")
    before = await api.snapshot()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    await bindings.create({"metadata": {"name": "ann"}, "roleRef": role, "subjects": [subject]})
    assert (await ann.request("GET", PODS)).status == 200
    await api.restore(before)
    assert (await ann.request("GET", PODS)).status == 403


async def test_a_quota_counts_what_is_there(api: API, client: Client) -> None:
    quotas = client.resource("v1", "resourcequotas", namespace="default")
    await quotas.create({"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "2"}}})
    await until(quotas, "few", lambda it: it["status"].get("used") == {"count/secrets": "0"})
    before = await api.snapshot()
    # The controller that counts may be a moment behind and allow one more, but not many.
    assert 403 in [await _secret(api, name) for name in "abcdef"]
    await api.restore(before)
    assert await _secret(api, "a") == 201


async def test_an_owner_that_is_back_keeps_what_it_owns(api: API, client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    owner = await create_config_map(api, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await create_config_map(api, "owned", metadata={"ownerReferences": [reference]})
    before = await api.snapshot()
    await maps.delete("owner")
    await until_gone(maps, "owned")
    await api.restore(before)
    await maps.patch("owned", {"data": {"a": "b"}})
    await _turns()
    assert (await maps.get("owned"))["data"] == {"a": "b"}


async def test_endpoints_follow_pods_from_where_they_were(api: API, client: Client) -> None:
    slices = client.resource("discovery.k8s.io/v1", "endpointslices", namespace="default")
    await client.resource("v1", "services", namespace="default").create(
        {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    )
    await until_all(slices, lambda found: _endpoints(found) == 0 and len(found) > 1)
    before = await api.snapshot()
    for _ in range(2):
        await _deploy(api, replicas=2)
        await until_all(slices, lambda found: _endpoints(found) == 2)
        await api.restore(before)


async def test_a_pod_that_restarted_has_not(api: API, client: Client) -> None:
    pods = client.resource("v1", "pods", namespace="default")
    await pods.create({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    await until(pods, "p", lambda it: it["status"]["phase"] == "Running")
    before = await api.snapshot()
    exits = {"pilothouse.dev/exit-code": "1", "pilothouse.dev/exit-after": "1s", "pilothouse.dev/exit-times": "1"}
    await pods.patch("p", {"metadata": {"annotations": exits}})
    await until(pods, "p", lambda it: it["status"]["containerStatuses"][0]["restartCount"])
    await api.restore(before)
    await pods.patch("p", {"metadata": {"labels": {"a": "b"}}})
    await _turns()
    assert (await pods.get("p"))["status"]["containerStatuses"][0]["restartCount"] == 0


def _endpoints(slices: list[Json]) -> int:
    return sum(len(each.get("endpoints") or ()) for each in slices if each["metadata"]["name"].startswith("web-"))


async def _turns() -> None:
    for _ in range(_LONG_ENOUGH):
        await asyncio.sleep(0)


async def _secret(api: API, name: str) -> int:
    return (await api.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": name}})).status


async def _deploy(api: API, *, replicas: int) -> None:
    labels, container = {"app": "web"}, {"name": "web", "image": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    answer = await api.request("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    assert answer.status == 201, answer.body


async def _nothing_differs(api: API, before: StoredSnapshot) -> None:
    for _ in range(_LONG_ENOUGH):
        assert _of_the_deployment(await api.snapshot()) == _of_the_deployment(before)
        await asyncio.sleep(0)


def _of_the_deployment(snapshot: StoredSnapshot) -> set[str]:
    kinds = tuple(f"/registry/{plural}/default/" for plural in ("deployments", "replicasets", "pods", "events"))
    return {key for key in snapshot.entries if key.startswith(kinds)}


def _ready(deployment: Json) -> int:
    return int(deployment["status"].get("readyReplicas", 0))


def _is_ready(node: Json) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
