"""An extension server that has nothing to serve yet, and one that registers where its forerunner is still going."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilothouse.builder import APIServer, Resource
from pilothouse.builder.extension_service import on_this_machine
from pilothouse.builder.registration import Registration
from pilothouse.testing import server as whole_server


async def test_a_server_starts_before_anything_is_declared() -> None:
    async with APIServer(group="wardle.example.com").in_async_test() as api:
        groups = (await api.request("GET", "/apis")).json["groups"]
        assert "wardle.example.com" not in [group["name"] for group in groups]


async def test_a_namespace_that_is_going_is_made_anew(tmp_path: Path) -> None:
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
        await asyncio.sleep(0.3)
        assert not adding.done()
        await config_maps.patch("held", {"metadata": {"finalizers": None}})
        await adding
        assert (await namespaces.get(server.namespace))["metadata"]["uid"] != first["metadata"]["uid"]
        await Registration(client, record).remove()  # as after a crash
        services = [each["metadata"]["name"] for each in (await client.get_json("/api/v1/services"))["items"]]
        assert server.name not in services
