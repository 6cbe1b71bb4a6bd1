"""Discovery, mapping, election and the blocking facade against a live server, over TLS with its client certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from live_server import LiveServer
from patience import PATIENCE

from pilothouse.client.blocking import BlockingClient
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import cancelled
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaseLock
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.machinery.names import GroupKind, GroupVersionResource
from pilothouse.machinery.objects import name_of
from pilothouse.machinery.release import RELEASES
from pilothouse.testing import server

QUICK = ElectionTimes(lease_duration=3, renew_deadline=2, retry_period=0.05)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveServer]:
    data: Path = tmp_path_factory.mktemp("live") / "data"
    async with LiveServer(data).run() as running:
        yield running


@pytest.mark.asyncio(loop_scope="module")
async def test_names_are_mapped_through_the_servers_discovery(live: LiveServer) -> None:
    async with connect(live.config) as client:
        discovery = DiscoveryClient(client)
        found = await discovery.server_resources()
        assert found.failed == {}
        assert found.groups[0].name == ""
        mapper = RESTMapper(discovery)
        assert (await mapper.mapping_for("cm")).resource == GroupVersionResource("", "v1", "configmaps")
        assert not (await mapper.mapping_for("namespace")).namespaced
        leases = await mapper.mapping(GroupKind("coordination.k8s.io", "Lease"))
        assert leases.resource == GroupVersionResource("coordination.k8s.io", "v1", "leases")
        with pytest.raises(NoMatch):
            await mapper.mapping_for("no-such-thing")


@pytest.mark.asyncio(loop_scope="module")
async def test_leadership_passes_from_one_candidate_to_the_next(live: LiveServer) -> None:
    order: asyncio.Queue[str] = asyncio.Queue()

    async def stand(client: Client, name: str) -> None:
        async def lead() -> None:
            order.put_nowait(name)
            await asyncio.Event().wait()

        lock = LeaseLock(client, namespace="default", name="election", identity=name)
        await LeaderElector(lock, times=QUICK).run(lead)

    async with asyncio.timeout(PATIENCE), connect(live.config) as client:
        one = asyncio.ensure_future(stand(client, "one"))
        assert await order.get() == "one"
        two = asyncio.ensure_future(stand(client, "two"))
        leases = client.resource("coordination.k8s.io/v1", "leases", namespace="default")
        held = await leases.get("election")
        assert held["spec"]["holderIdentity"] == "one"
        await cancelled(one)
        assert await order.get() == "two"
        taken = await leases.get("election")
        assert taken["spec"]["leaseTransitions"] == held["spec"]["leaseTransitions"] + 1
        await cancelled(two)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_script_finds_resources_by_their_short_names(live: LiveServer) -> None:
    def script() -> list[str]:
        with BlockingClient(live.config) as client:
            maps = client.find("cm", namespace="default")
            for name in ("a", "b"):
                maps.create({"metadata": {"name": name}, "data": {"x": "1"}})
            names = [obj["metadata"]["name"] for obj in maps.items()]
            maps.delete("a")
            maps.delete("b")
            return names

    assert {"a", "b"} <= {*await asyncio.to_thread(script)}


@pytest.mark.parametrize("kubernetes_version", RELEASES)
async def test_an_informer_receives_the_events_of_every_kubernetes_version(kubernetes_version: str) -> None:
    """Versions encode the stream of an informer in different ways: 1.37 compresses the events."""
    names: asyncio.Queue[str] = asyncio.Queue()
    handler = ResourceEventHandlerFuncs(add=lambda obj: names.put_nowait(name_of(obj)))
    chosen = server(process=True, controllers="-*", kubernetes_version=kubernetes_version)
    async with asyncio.timeout(PATIENCE), chosen as api, connect(load_kubeconfig(api.kubeconfig)) as client:
        config_maps = client.resource("v1", "configmaps", namespace="default")
        await config_maps.create({"metadata": {"name": "before"}})
        informer = SharedIndexInformer(config_maps)
        informer.add_event_handler(handler)
        running = asyncio.ensure_future(informer.run())
        assert await names.get() == "before"
        for name in ("first", "second"):
            await config_maps.create({"metadata": {"name": name}})
            assert await names.get() == name
        await cancelled(running)
