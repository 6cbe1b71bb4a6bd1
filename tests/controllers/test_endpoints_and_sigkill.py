"""A server that is killed while it writes endpoints and quotas ends where it would have ended without that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from awaiting import until, until_all
from restarts import changes_of, kill_after, server_client
from service_pods import ServicesAndPods
from serving_process import ServeProcess

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.objects import Json, labels_of

NOW = DeleteOptions(grace_period_seconds=0)
PODS, LEFT = 7, 3


async def test_endpoints_and_quotas_are_right_after_a_kill(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "data")
    try:
        async with server_client(server) as own:
            there = ServicesAndPods(own, "default")
            await there.node("n")
            await quotas(own).create({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "50"}}})
            await until(quotas(own), "q", lambda quota: quota["status"].get("used"))
            for number in range(PODS):
                await there.pod(f"p{number}", f"10.0.0.{number}")
            watch = await changes_of(there.slices)
            await there.service("web")
            for number in range(LEFT, PODS):
                await there.pods.delete(f"p{number}", NOW)
            server = await kill_after(2, watch, server)
        async with server_client(server) as own:
            there = ServicesAndPods(own, "default")
            left = Counter(f"10.0.0.{number}" for number in range(LEFT))
            await until_all(there.slices, lambda slices: in_slices(slices) == left)
            await until(there.endpoints, "web", lambda found: in_endpoints(found) == left)
            await until(quotas(own), "q", lambda quota: quota["status"].get("used") == {"pods": str(LEFT)})
    finally:
        server.close()


def quotas(own: Client) -> ResourceClient:
    return own.resource("v1", "resourcequotas", namespace="default")


def in_slices(slices: list[Json]) -> Counter[str]:
    of_web = [each for each in slices if labels_of(each)["kubernetes.io/service-name"] == "web"]
    return Counter(address for each in of_web for one in each["endpoints"] or () for address in one["addresses"])


def in_endpoints(endpoints: Json) -> Counter[str]:
    return Counter(each["ip"] for subset in endpoints.get("subsets") or () for each in subset.get("addresses") or ())
