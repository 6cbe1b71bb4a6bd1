"""Where connections to a Service go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from rules import decoded
from services import new_service

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceUnresolved
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.core.services.resolver import LoopbackResolver, service_resolver
from pilothouse.kube.core.services.resource import SERVICES
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.registries import Registries
from pilothouse.machinery.objects import Json


class Cluster:
    def __init__(self, registries: Registries) -> None:
        self.registries = registries
        self._services, self._slices = (OwnAccess(registries.open(each)) for each in (SERVICES, ENDPOINT_SLICES))

    async def service(self, name: str = "web", **spec: Any) -> None:
        ports = [{"name": "https", "port": 443}, {"name": "other", "port": 8443}]
        ip = spec.pop("clusterIP", "10.0.0.7")
        addresses = {"clusterIP": ip, "clusterIPs": [ip]} if ip else {}
        await self._services.create(new_service(name, **{"ports": ports, **addresses, **spec}))

    async def endpoints(self, name: str, *addresses: str, **changed: Any) -> None:
        obj = {
            "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": 6443}],
            "endpoints": [{"addresses": [address]} for address in addresses],
            **changed,
        }
        await self._slices.create(decoded(ENDPOINT_SLICES, obj))

    async def relabel(self, name: str, service: str) -> None:
        def change(obj: Json) -> None:
            obj["metadata"]["labels"]["kubernetes.io/service-name"] = service

        found = await self._slices.get(name, namespace="default")
        assert found is not None
        await self._slices.update(found, change)

    async def resolve(self, name: str = "web", port: int = 443, *, endpoints: bool | None = None) -> str:
        for registry in self.registries.opened:  # a list of the newest state waits until the cache has it
            await registry.list_newest()
        resolver = service_resolver(ServiceLister(self.registries), endpoints=endpoints)
        found = await resolver.resolve("default", name, port)
        return f"{found.host}:{found.port}"

    async def refusal(self, name: str = "web", port: int = 443, *, endpoints: bool | None = None) -> str:
        with pytest.raises(ServiceUnresolved) as refused:
            await self.resolve(name, port, endpoints=endpoints)
        return str(refused.value)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    store = await SqliteStore.open(tmp_path)
    made = Cluster(Registries(store))
    for registry in made.registries.opened:
        await registry.start()
    yield made
    for registry in made.registries.opened:
        await registry.stop()
    await store.close()


async def test_a_service_is_reached_by_its_cluster_ip(cluster: Cluster) -> None:
    await cluster.service()
    assert await cluster.resolve(port=8443, endpoints=False) == "10.0.0.7:8443"


async def test_an_external_name_is_reached_on_any_port(cluster: Cluster) -> None:
    await cluster.service(type="ExternalName", externalName="there.example.com", clusterIP="", ports=[])
    assert await cluster.resolve(port=1, endpoints=False) == "there.example.com:1"


@pytest.mark.parametrize("endpoints", [True, False, None])
async def test_error_names_the_missing_service_or_port(cluster: Cluster, endpoints: bool | None) -> None:
    await cluster.service()
    assert await cluster.refusal("none", endpoints=endpoints) == 'service "none" not found'
    assert await cluster.refusal(port=80, endpoints=endpoints) == 'no service port 80 found for service "web"'


async def test_a_headless_service_has_no_cluster_ip_but_has_endpoints(cluster: Cluster) -> None:
    await cluster.service(clusterIP="None")
    assert await cluster.refusal(endpoints=False) == 'cannot route to service with ClusterIP "None"'
    assert await cluster.refusal() == 'cannot route to service with ClusterIP "None"'
    await cluster.endpoints("a", "192.0.2.7")
    assert await cluster.resolve() == "192.0.2.7:6443"


async def test_endpoints_are_found_by_the_name_of_the_service_port(cluster: Cluster) -> None:
    await cluster.service()
    assert await cluster.refusal(endpoints=True) == 'no endpoints available for service "web"'
    await cluster.endpoints("a", "192.0.2.7")
    assert await cluster.resolve(endpoints=True) == "192.0.2.7:6443"
    assert await cluster.refusal(port=8443, endpoints=True) == 'no endpoints available for service "web"'


async def test_an_external_name_has_no_endpoints(cluster: Cluster) -> None:
    await cluster.service(type="ExternalName", externalName="there.example.com", clusterIP="", ports=[])
    assert await cluster.refusal(endpoints=True) == 'unsupported service type "ExternalName"'


async def test_all_ready_endpoints_and_only_these_are_chosen(cluster: Cluster) -> None:
    await cluster.service()
    ready = [{"addresses": ["192.0.2.1"]}, {"addresses": ["192.0.2.2"], "conditions": {"ready": True}}]
    await cluster.endpoints("a", endpoints=[*ready, {"addresses": ["192.0.2.3"], "conditions": {"ready": False}}])
    await cluster.endpoints("b", "192.0.2.4")
    await cluster.endpoints("c", "192.0.2.5", metadata={"name": "c", "namespace": "default", "labels": {}})
    found = {await cluster.resolve(endpoints=True) for _ in range(100)}
    assert found == {"192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.4:6443"}


async def test_endpoints_of_the_first_ip_family_are_preferred(cluster: Cluster) -> None:
    await cluster.service(ipFamilies=["IPv6"], clusterIP="2001:db8::7")
    await cluster.endpoints("four", "192.0.2.1")
    await cluster.endpoints("six", "2001:db8::1", addressType="IPv6")
    assert {await cluster.resolve(endpoints=True) for _ in range(10)} == {"2001:db8::1:6443"}


async def test_default_resolver_prefers_endpoints_to_the_cluster_ip(cluster: Cluster) -> None:
    await cluster.service()
    assert await cluster.resolve() == "10.0.0.7:443"
    await cluster.endpoints("a", "192.0.2.7")
    assert await cluster.resolve() == "192.0.2.7:6443"


async def test_the_service_kubernetes_is_this_server(cluster: Cluster) -> None:
    own = ServiceAddress("127.0.0.1", 6443)
    resolver = LoopbackResolver(service_resolver(ServiceLister(cluster.registries), endpoints=None), lambda: own)
    assert await resolver.resolve("default", "kubernetes", 443) == own
    with pytest.raises(ServiceUnresolved):
        await resolver.resolve("default", "kubernetes", 80)


async def test_endpoint_slice_with_a_new_owner_notifies_both_services(cluster: Cluster) -> None:
    await cluster.endpoints("web-1", "192.0.2.1")
    told: asyncio.Queue[str] = asyncio.Queue()
    following = asyncio.create_task(
        ServiceLister(cluster.registries).follow(lambda _, name: told.put_nowait(name), lambda: None)
    )
    assert await asyncio.wait_for(told.get(), PATIENCE) == "web"
    await cluster.relabel("web-1", "api")
    assert {await asyncio.wait_for(told.get(), PATIENCE) for _ in range(2)} == {"web", "api"}
    following.cancel()
