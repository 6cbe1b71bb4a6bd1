"""A server with --testing comes to rest, and goes by a time that tests set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from custom_resources import DEFINITIONS, definition, eventually, install

from pilothouse.errors import Invalid
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[API]:
    async with server(testing=True, simulated_nodes=2, event_ttl="10m") as api:
        await api.settle()
        yield api


@pytest_asyncio.fixture(loop_scope="module")
async def stopped(cluster: API) -> AsyncIterator[API]:
    """The server with its clock stopped for the test."""
    await cluster.clock.stop()
    yield cluster
    await cluster.clock.run()


def pod_template(**spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_settled_server_has_done_all_that_was_asked_of_it(cluster: API) -> None:
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pod_template()}
    await cluster.request("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    await cluster.settle()
    pods = (await cluster.request("GET", PODS)).json["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3
    await cluster.request("DELETE", f"{DEPLOYMENTS}/web")
    await cluster.settle()
    assert (await cluster.request("GET", PODS)).json["items"] == []


async def test_the_garbage_collector_of_a_settled_server_watches_new_kinds(cluster: API) -> None:
    """Otherwise it would miss that an owner of such a kind is deleted. Its first attempt is refused here."""
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    refused = cluster.fault(users=[collector], verbs=["list", "watch"], resources=["widgets"], times=2, answer=503)
    async with cluster.recording(users=[collector]) as seen, refused:
        await install(cluster, definition())
        await cluster.settle()
        of_widgets = [each for each in (await seen.status())["requests"] if each.get("resource") == "widgets"]
        assert {each["verb"]: each["count"] for each in of_widgets}["watch"] == 2
    await cluster.request("DELETE", f"{DEFINITIONS}/widgets.example.com")


async def test_a_wait_that_is_too_short_says_who_still_works(cluster: API) -> None:
    async with cluster.fault(users=["system:kube-scheduler"], verbs=["create"], delay="1s"):
        await cluster.request("POST", PODS, {"metadata": {"name": "slow"}, "spec": pod_template()["spec"]})
        with pytest.raises(TimeoutError, match="requests"):
            await cluster.settle(timeout=0.3)
    await cluster.settle()
    await cluster.request("DELETE", f"{PODS}/slow?gracePeriodSeconds=0")


async def test_time_stands_still_and_goes_on_by_steps(stopped: API) -> None:
    before = await stopped.clock.now()
    await stopped.clock.step("5m")
    made = (await stopped.request("POST", "/api/v1/namespaces", {"metadata": {"name": "later"}})).json
    assert datetime.fromisoformat(made["metadata"]["creationTimestamp"]) == before + timedelta(minutes=5)


async def test_schedules_are_kept_and_nodes_stay_alive_on_the_way(stopped: API) -> None:
    job = {"template": {"spec": {**pod_template()["spec"], "restartPolicy": "Never"}}}
    body = {"metadata": {"name": "tick"}, "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job}}}
    path = "/apis/batch/v1/namespaces/default"
    assert (await stopped.request("POST", f"{path}/cronjobs", body)).status == 201
    await stopped.settle()
    before = await stopped.clock.now()
    await stopped.clock.step("11m")
    await stopped.settle()
    due = int((before.timestamp() + 660) // 300 - before.timestamp() // 300)
    assert len((await stopped.request("GET", f"{path}/jobs")).json["items"]) == due
    nodes = (await stopped.request("GET", "/api/v1/nodes")).json["items"]
    ready = [each["status"] for node in nodes for each in node["status"]["conditions"] if each["type"] == "Ready"]
    assert ready == ["True", "True"]
    await stopped.request("DELETE", f"{path}/cronjobs/tick")


async def test_tokens_and_events_expire(stopped: API) -> None:
    asked = {"spec": {"expirationSeconds": 600}}
    token = await stopped.request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", asked)
    headers = {"authorization": f"Bearer {token.json['status']['token']}"}
    assert (await stopped.request("GET", "/version", **headers)).status == 200
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "R"}
    assert (await stopped.request("POST", "/api/v1/namespaces/default/events", event)).status == 201
    await stopped.clock.step("11m")
    assert (await stopped.request("GET", "/version", **headers)).status == 401
    await eventually(stopped, 404, "GET", "/api/v1/namespaces/default/events/e")


async def test_there_is_one_clock_which_only_goes_forward_by_steps(cluster: API) -> None:
    with pytest.raises(Invalid, match="a step goes forward"):
        await cluster.clock.step("-5m")
    other = {"apiVersion": "testing.pilothouse.dev/v1alpha1", "kind": "Clock", "metadata": {"name": "other"}}
    answer = await cluster.request("POST", "/apis/testing.pilothouse.dev/v1alpha1/clocks", other)
    assert "there is one Clock, and its name is server" in answer.json["message"]


async def test_readyz_says_that_the_clock_may_be_set(cluster: API) -> None:
    body = (await cluster.request("GET", "/readyz?verbose")).body
    assert b"[+]testing-clock-may-not-be-the-machines ok" in body


async def test_the_clock_can_be_set(stopped: API) -> None:
    await stopped.clock.set(datetime(2040, 1, 1, tzinfo=UTC))
    assert await stopped.clock.now() == datetime(2040, 1, 1, tzinfo=UTC)
    await stopped.clock.set("2020-01-01T00:00:00Z")
    assert await stopped.clock.now() == datetime(2020, 1, 1, tzinfo=UTC)
