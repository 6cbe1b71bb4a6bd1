"""An extension server that has nothing to serve yet, and one that registers where its forerunner is still going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from awaiting import until

from pilothouse.builder import APIServer, Resource
from pilothouse.builder.extension_service import on_this_machine
from pilothouse.builder.registration import Registration
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.completion import host_address
from pilothouse.kinds.conditions import is_true
from pilothouse.testing import API
from pilothouse.testing import server as whole_server


async def test_a_server_starts_before_anything_is_declared() -> None:
    async with APIServer(group="wardle.example.com").in_async_test() as api:
        groups = (await api.request("GET", "/apis")).json["groups"]
        assert "wardle.example.com" not in [group["name"] for group in groups]


async def test_a_namespace_that_is_going_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = APIServer(group="wardle.example.com")

    @server.resource(version="v1alpha1")
    class Flunder(Resource):
        pass

    async with whole_server() as api:
        client = api.client()
        namespaces = client.resource("v1", "namespaces")
        going = {"metadata": {"name": server.namespace}, "spec": {"finalizers": ["kubernetes"]}}
        first = await namespaces.create(going)
        config_maps = client.resource("v1", "configmaps", namespace=server.namespace)
        await config_maps.create({"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
        await namespaces.delete(server.namespace)
        record = tmp_path / "record"
        registration = Registration(client, record)
        objects = on_this_machine(server.place, cluster=api.url, port=8443, ca_bundle="")
        adding = asyncio.create_task(registration.put(objects))
        while "has finalizers remaining: example.com/held in 1 resource instances" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert "waiting for the deletion of Namespace wardle: " in caplog.text
        assert not adding.done()
        await config_maps.patch("held", {"metadata": {"finalizers": None}})
        await adding
        assert (await namespaces.get(server.namespace))["metadata"]["uid"] != first["metadata"]["uid"]
        await Registration(client, record).remove()  # as after a crash
        services = [each["metadata"]["name"] for each in (await client.get_json("/api/v1/services"))["items"]]
        assert server.name not in services


@asynccontextmanager
async def registered(server: APIServer, api: API, tmp_path: Path, *flags: str) -> AsyncIterator[None]:
    words = [f"--data-dir={tmp_path}", f"--kubeconfig={api.kubeconfig}", "--secure-port=0", "--register", *flags]
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve(words, stop, ready.set_result))
    await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
    try:
        if serving.done():
            serving.result()
        yield
    finally:
        stop.set()
        await asyncio.wait([serving])


@pytest.mark.skipif(host_address() == "127.0.0.1", reason="this machine has no address but loopback")
async def test_an_aggregator_that_routes_to_endpoints_reaches_a_registered_server(tmp_path: Path) -> None:
    server = APIServer(group="wardle.example.com")

    @server.resource(version="v1alpha1")
    class Flunder(Resource):
        pass

    async with whole_server(enable_aggregator_routing=True) as api:
        client = api.client()
        api_services = client.resource("apiregistration.k8s.io/v1", "apiservices")
        services = client.resource("v1", "services", namespace=server.namespace)
        slices = client.resource("discovery.k8s.io/v1", "endpointslices", namespace=server.namespace)
        for _ in range(2):  # the second server finds nothing of the first
            async with registered(server, api, tmp_path):
                await until(api_services, "v1alpha1.wardle.example.com", lambda obj: is_true(obj, "Available"))
                assert (await services.get(server.name))["spec"]["type"] == "ClusterIP"
                (found,) = (await slices.list())["items"]
                assert found["endpoints"][0]["addresses"] == [host_address()]
                assert (await api.request("GET", "/apis/wardle.example.com/v1alpha1/flunders")).status == 200
            assert (await services.list())["items"] == (await slices.list())["items"] == []


async def test_a_server_on_loopback_is_told_what_a_routing_aggregator_needs(tmp_path: Path) -> None:
    server = APIServer(group="wardle.example.com")

    @server.resource(version="v1alpha1")
    class Flunder(Resource):
        pass

    async with whole_server(enable_aggregator_routing=True) as api:
        with pytest.raises(
            StartFailed, match=r"endpoints cannot have loopback addresses: set --bind-address=0\.0\.0\.0"
        ):
            async with registered(server, api, tmp_path, "--bind-address=127.0.0.1"):
                pass
        services = api.client().resource("v1", "services", namespace=server.namespace)
        assert (await services.list())["items"] == []
