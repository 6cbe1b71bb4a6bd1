"""Extension servers as they run: behind a cluster whose users they believe, alone, and with their controllers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import PATIENCE

from pilothouse.builder import APIServer, GroupVersionResource, Json, ObjectName, Reconciler, Requeue, Resource
from pilothouse.builder.command import parse_options
from pilothouse.builder.running import Ready, serve
from pilothouse.client import connect, load_kubeconfig
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.completion import InvalidOptions
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.testing import API
from pilothouse.testing import server as whole

GROUP = "run.example.com"
_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")


def new_server() -> tuple[APIServer, type[Resource]]:
    server = APIServer(group=GROUP)

    @server.resource(version="v1")
    class Boat(Resource):
        @dataclass
        class Spec:
            cargo: str = ""

        @dataclass
        class Status:
            loaded: bool = False

    return server, Boat


def boat(name: str, cargo: str = "") -> dict[str, object]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"cargo": cargo}}


async def test_the_cluster_says_who_a_user_is_and_what_they_may_do() -> None:
    server, _ = new_server()
    async with server.in_async_test(authorization_mode="RBAC") as api:
        ann, path = api.as_user("ann", groups=["sailors"]), f"/apis/{GROUP}/v1/namespaces/default/boats"
        refused = await ann.request("GET", path)
        assert refused.status == 403
        assert refused.json["message"] == (
            f'boats.{GROUP} is forbidden: User "ann" cannot list resource "boats" in API group "{GROUP}"'
            ' in the namespace "default"'
        )
        await _allow(api, "sailors")
        async with asyncio.timeout(PATIENCE):  # a refusal is believed for ten seconds
            while (await ann.request("GET", path)).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.2)


async def _allow(api: API, group: str) -> None:
    rules = [{"apiGroups": [GROUP], "resources": ["boats"], "verbs": ["list"]}]
    role = {"metadata": {"name": "boats"}, "rules": rules}
    subject = {"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": "boats", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "boats"}, "subjects": [subject], "roleRef": reference}
    await api.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    await api.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


async def test_a_stopped_server_leaves_nothing_registered(tmp_path: Path) -> None:
    server, _ = new_server()
    async with whole() as api:
        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        arguments = [f"--data-dir={tmp_path}", f"--kubeconfig={api.kubeconfig}", "--secure-port=0", "--register"]
        running = asyncio.create_task(server.serve(arguments, stop, ready.set_result))
        await ready
        assert (await api.request("GET", f"{_SERVICES}/v1.{GROUP}")).status == 200
        stop.set()
        await running
        assert (await api.request("GET", f"{_SERVICES}/v1.{GROUP}")).status == 404
        assert (await api.request("GET", "/api/v1/namespaces/run/services/run-apiserver")).status == 404


async def test_the_objects_survive_a_restart_and_the_registration_is_a_file_without_register(tmp_path: Path) -> None:
    server, _ = new_server()
    async with whole() as api:
        arguments = [f"--data-dir={tmp_path}", f"--kubeconfig={api.kubeconfig}", "--secure-port=0"]
        for round in range(2):
            stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
            running = asyncio.create_task(server.serve(arguments, stop, ready.set_result))
            registration = json.loads((await ready).register_file.read_text())
            for obj in registration["items"]:
                await _put(api, obj)
            await _available(api)
            boats = api.client().resource(f"{GROUP}/v1", "boats", namespace="default")
            if round == 0:
                await boats.create(boat("a"))
            assert [each["metadata"]["name"] for each in (await boats.list())["items"]] == ["a"]
            stop.set()
            await running


async def _put(api: API, obj: Json) -> None:
    plurals = {"Namespace": "namespaces", "Service": "services", "APIService": "apiservices"}
    namespace = obj["metadata"].get("namespace", "")
    objects = api.client().resource(obj["apiVersion"], plurals[obj["kind"]], namespace=namespace)
    try:
        await objects.create(obj)
    except AlreadyExists:
        await objects.patch(obj["metadata"]["name"], {"spec": obj["spec"]} if "spec" in obj else {})


async def _available(api: API) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await api.request("GET", f"/apis/{GROUP}/v1/boats")).status != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_server_without_a_cluster_obeys_whoever_has_its_kubeconfig(tmp_path: Path) -> None:
    server, _ = new_server()
    options = parse_options([f"--data-dir={tmp_path}", "--secure-port=0", "--standalone"], group=GROUP)
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(server, options, stop, ready.set_result))
    where: Ready = await ready
    assert where.kubeconfig is not None
    async with connect(load_kubeconfig(where.kubeconfig)) as client:
        boats = client.resource(f"{GROUP}/v1", "boats", namespace="anywhere")
        assert (await boats.create(boat("a")))["metadata"]["name"] == "a"
        assert "com.example.run.v1.Boat" in (await client.get_json("/openapi/v2"))["definitions"]
    stop.set()
    await running


def test_wrong_flags_are_refused_together() -> None:
    with pytest.raises(InvalidOptions) as error:
        parse_options(["--standalone", "--register", "--secure-port=-1"], group=GROUP)
    assert "--standalone" in str(error.value)
    assert "secure-port" in str(error.value)


async def test_a_cluster_that_cannot_be_reached_is_an_error_that_says_so(tmp_path: Path) -> None:
    server, _ = new_server()
    nowhere = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
    config = {"clusters": [nowhere], "contexts": [{"name": "x", "context": {"cluster": "x"}}], "current-context": "x"}
    (tmp_path / "config").write_text(json.dumps(config))
    arguments = [f"--data-dir={tmp_path / 'data'}", f"--kubeconfig={tmp_path / 'config'}"]
    with pytest.raises(StartFailed, match=r"127\.0\.0\.1"):
        await server.serve(arguments, asyncio.Event(), lambda _: None)


async def test_a_controller_reconciles_by_what_it_watches_and_writes_status_and_events() -> None:
    server, boats = new_server()

    def boats_for(config_map: Json) -> list[str]:
        wanted = config_map.get("data", {}).get("for")
        return [f"default/{wanted}"] if wanted else []

    @server.controller(boats, watches=[(CONFIG_MAPS, boats_for)])
    class Loader(Reconciler[Resource]):
        async def reconcile(self, key: ObjectName) -> Requeue | None:
            found = self.get(key)
            if found is None:
                return None
            maps = self.lister(CONFIG_MAPS).namespace(key.namespace)
            cargo = [each for each in maps.list() if each.get("data", {}).get("for") == key.name]
            if cargo and not found.status.loaded:
                found.status.loaded = True
                await self.update_status(found)
                self.record(found, "Loaded", "the cargo is on board")
            return None

    async with server.in_async_test() as api:
        client = api.client()
        ours = client.resource(f"{GROUP}/v1", "boats", namespace="default")
        await ours.create(boat("a"))
        cargo = {"metadata": {"name": "cargo"}, "data": {"for": "a"}}
        await client.resource("v1", "configmaps", namespace="default").create(cargo)
        async with asyncio.timeout(PATIENCE):
            while not (await ours.get("a")).get("status"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            events = client.resource("v1", "events", namespace="default")
            while not [each for each in (await events.list())["items"] if each["reason"] == "Loaded"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await ours.get("a"))["status"] == {"loaded": True}
