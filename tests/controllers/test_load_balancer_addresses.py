"""service-lb-controller and simulated-ingress-controller: addresses where no cloud gives any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.controllers.loadbalancer.ingresses import is_simulated
from pilothouse.controllers.loadbalancer.services import FINALIZER, AddressPool, NoAddressLeft, addresses_of
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json, metadata

CONTROLLERS = ("service-lb-controller", "simulated-ingress-controller")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield replace(server, config=replace(server.config, simulated_load_balancer_range="203.0.113.0/29"))


def service(name: str, **spec: Any) -> Json:
    asked = {"type": "LoadBalancer", "ports": [{"port": 80}], **spec}
    return {"metadata": {"name": name}, "spec": asked}


async def test_services_keep_addresses_of_their_own_until_they_no_longer_want_one(server: ControlledServer) -> None:
    services = server.client.resource("v1", "services", namespace="default")
    async with managed(server, *CONTROLLERS):
        await services.create(service("a"))
        first = await until(services, "a", addresses_of)
        assert first["status"]["loadBalancer"] == {"ingress": [{"ip": "203.0.113.1", "ipMode": "VIP"}]}
        assert FINALIZER in metadata(first)["finalizers"]
        await services.create(service("b", loadBalancerIP="203.0.113.4"))
        assert addresses_of(await until(services, "b", addresses_of)) == ["203.0.113.4"]
    await services.create(service("c"))
    await services.create(service("others", loadBalancerClass="example.com/lb"))
    async with managed(server, *CONTROLLERS):
        assert addresses_of(await until(services, "c", addresses_of)) == ["203.0.113.2"]
        assert addresses_of(await services.get("a")) == ["203.0.113.1"]
        await services.patch("a", {"spec": {"type": "ClusterIP"}})
        plain = await until(services, "a", lambda found: FINALIZER not in (metadata(found).get("finalizers") or ()))
        assert addresses_of(plain) == []
        await services.delete("c")
        await until_gone(services, "c")
        for name in "defgh":
            await services.create(service(name))
        events = server.client.resource("v1", "events", namespace="default")
        failed = "SyncLoadBalancerFailed"
        told = await until_all(events, lambda items: any(each["reason"] == failed for each in items))
    assert addresses_of(await services.get("others")) == []
    given = {address for name in "bdefgh" for address in addresses_of(await services.get(name))}
    assert given == {f"203.0.113.{number}" for number in range(1, 6)}
    reasons = {each["reason"] for each in told if each["source"]["component"] == "service-controller"}
    assert reasons >= {"EnsuringLoadBalancer", "EnsuredLoadBalancer", "DeletingLoadBalancer", "DeletedLoadBalancer"}


async def test_ingresses_of_the_simulated_class_have_one_address(server: ControlledServer) -> None:
    ingresses = server.client.resource("networking.k8s.io/v1", "ingresses", namespace="default")
    backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    async with managed(server, *CONTROLLERS):
        await ingresses.create({"metadata": {"name": "other"}, "spec": {"ingressClassName": "nginx", **backend}})
        await ingresses.create({"metadata": {"name": "mine"}, "spec": {"ingressClassName": "simulated", **backend}})
        mine = await until(ingresses, "mine", lambda found: found["status"]["loadBalancer"])
        assert mine["status"]["loadBalancer"] == {"ingress": [{"ip": "203.0.113.6"}]}
        assert (await ingresses.get("other"))["status"]["loadBalancer"] == {}


def test_addresses_are_handed_out_once_and_come_back() -> None:
    pool = AddressPool("192.0.2.0/29")
    assert [pool.take(name) for name in "abc"] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert pool.take("d", "192.0.2.2") == "192.0.2.4"
    assert pool.take("d", "192.0.2.4") == "192.0.2.4"
    assert pool.take("e", "not an address") == "192.0.2.5"
    with pytest.raises(NoAddressLeft, match=r"no address is left in 192\.0\.2\.0/29"):
        pool.take("f")
    pool.release("b")
    assert pool.take("f", "198.51.100.1") == "192.0.2.2"
    assert AddressPool("2001:db8::/64").of_ingresses == "2001:db8::ffff:ffff:ffff:ffff"


def test_an_old_annotation_names_the_class_of_an_ingress_too() -> None:
    assert is_simulated({"metadata": {"annotations": {"kubernetes.io/ingress.class": "simulated"}}})
    assert not is_simulated({"metadata": {}, "spec": {}})


def test_cloud_stand_ins_run_with_simulated_nodes_or_by_name() -> None:
    def chosen(*choice: str, simulation: bool = False) -> set[str]:
        return {each.name for each in enabled(choice, simulation=simulation)} & {*CONTROLLERS}

    assert chosen("*") == set()
    assert chosen("*", simulation=True) == {*CONTROLLERS}
    assert chosen("*", "service") == {"service-lb-controller"}
    assert chosen("*", "-service", simulation=True) == {"simulated-ingress-controller"}
