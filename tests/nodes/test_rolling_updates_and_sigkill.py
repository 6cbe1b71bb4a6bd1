"""A server that is killed in the middle of a rolling update goes on with it, and ends with no pod too many."""

from __future__ import annotations

from pathlib import Path

import pytest
from awaiting import until, until_all
from restarts import changes_of, kill_after, server_client
from serving_process import ServeProcess

from pilothouse.client import Client, Json, ResourceClient

pytestmark = pytest.mark.slow

REPLICAS, KILLED_AFTER = 200, 300
SURGE = 50


def deployments(client: Client) -> ResourceClient:
    return client.resource("apps/v1", "deployments", namespace="default")


def pods(client: Client) -> ResourceClient:
    return client.resource("v1", "pods", namespace="default")


def deployment(image: str) -> Json:
    labels = {"app": "web"}
    containers = [{"name": "c", "image": image}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, "terminationGracePeriodSeconds": 0}}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def is_rolled_out(found: Json) -> bool:
    status = found.get("status") or {}
    counts = [status.get(each) for each in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == found["metadata"]["generation"] and counts == [REPLICAS] * 3


async def test_a_rolling_update_that_is_cut_by_a_kill_ends_right(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "data", "--simulated-nodes=5", "--simulation-delay=1ms")
    try:
        async with server_client(server) as client:
            await deployments(client).create(deployment("web:1"))
            await until(deployments(client), "web", is_rolled_out)
            watch = await changes_of(pods(client))
            await deployments(client).patch("web", {"spec": deployment("web:2")["spec"]})
            server = await kill_after(KILLED_AFTER, watch, server)
        async with server_client(server) as client:
            there = await pods(client).list()
            assert {each["spec"]["containers"][0]["image"] for each in there["items"]} == {"web:1", "web:2"}
            assert len(there["items"]) <= REPLICAS + SURGE
            await until(deployments(client), "web", is_rolled_out)
            await until_all(pods(client), lambda found: len(found) == REPLICAS)
            images = {each["spec"]["containers"][0]["image"] for each in (await pods(client).list())["items"]}
            assert images == {"web:2"}
    finally:
        server.close()
