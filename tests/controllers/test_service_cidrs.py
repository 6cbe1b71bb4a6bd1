"""service-cidr-controller: a range of addresses stays as long as it is needed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.servicecidrs import FINALIZER, is_needed, overlapping
from pilothouse.controllers.table import enabled
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.objects import Json, metadata


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


async def test_a_range_stays_until_no_service_has_an_address_from_it(server: ControlledServer) -> None:
    cidrs = server.client.resource("networking.k8s.io/v1", "servicecidrs")
    services = server.client.resource("v1", "services", namespace="default")
    clock = FakeClock(time.time())
    chosen = enabled(["service-cidr-controller"])
    manager = ControllerManager(
        server.client, chosen, registry=CollectorRegistry(), client_as=server.client_as, clock=clock
    )
    async with running(manager):
        await until(cidrs, "kubernetes", lambda found: FINALIZER in (metadata(found).get("finalizers") or ()))
        await cidrs.create({"metadata": {"name": "more"}, "spec": {"cidrs": ["198.51.100.0/24"]}})
        ready = await until(cidrs, "more", lambda found: find_condition(found, "Ready"))
        assert (find_condition(ready, "Ready") or {})["message"] == "Kubernetes Service CIDR is ready"
        spec = {"clusterIP": "198.51.100.7", "ports": [{"port": 80}]}
        await services.create({"metadata": {"name": "s"}, "spec": spec})
        await cidrs.delete("more")
        ending = await until(cidrs, "more", lambda found: (find_condition(found, "Ready") or {})["status"] == "False")
        assert (find_condition(ending, "Ready") or {})["reason"] == "Terminating"
        await services.delete("s")
        while clock.next_timer() is None or (clock.next_timer() or 0) < 5:
            await clock.wait_for_timers(clock.timers + 1)
        clock.advance(11)
        await until_gone(cidrs, "more")


def cidr(name: str, *ranges: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"cidrs": [*ranges]}}


def ip(address: str, by: str = "ipallocator.k8s.io") -> Json:
    return {"metadata": {"name": address, "labels": {"ipaddress.kubernetes.io/managed-by": by}}}


def test_a_range_is_needed_if_addresses_are_in_no_other() -> None:
    small, large, other = cidr("small", "10.0.0.0/24"), cidr("large", "10.0.0.0/16"), cidr("other", "10.0.0.0/25")
    assert is_needed(small, [small, other], [ip("10.0.0.200")])
    assert not is_needed(small, [small, other], [ip("10.0.0.3"), ip("10.9.0.1"), ip("10.0.0.200", "someone")])
    assert not is_needed(small, [small, large], [ip("10.0.0.200")])
    assert overlapping(other, [small, large, cidr("far", "192.0.2.0/24", "2001:db8::/64")]) == ["small", "large"]
