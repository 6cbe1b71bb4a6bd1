"""The garbage collector on a real server: what its ways of deletion look like from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from controllers_on_a_server import ControlledServer, controlled_server, managed
from custom_resources import definition
from owner_graphs import CLUSTER_ROLE, CONFIG_MAP, WIDGET, Kind, until_gone
from patience import PATIENCE

from pilothouse.client.rest.options import DeleteOptions, ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.objects import Json, name_of, uid_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOLD = "example.com/hold"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("gc")) as server, managed(server, "garbagecollector"):
        for namespace in ("one", "two"):
            await server.create_namespace(namespace)
        yield server


def config_maps(server: ControlledServer, namespace: str = "one") -> ResourceClient:
    return server.client.resource("v1", "configmaps", namespace=namespace)


def owned_by(owner: Json, kind: Kind = CONFIG_MAP, **more: object) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name_of(owner), "uid": uid_of(owner), **more}


def config_map(name: str, *owners: Json, **metadata: object) -> Json:
    return {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}


async def test_a_foreground_deletion_waits_for_blocking_dependents_only(server: ControlledServer) -> None:
    objects = config_maps(server)
    owner = await objects.create(config_map("owner"))
    blocking = owned_by(owner, blockOwnerDeletion=True)
    await objects.create(config_map("held", blocking, finalizers=[HOLD]))
    await objects.create(config_map("held-but-not-blocking", owned_by(owner), finalizers=[HOLD]))
    await objects.create(config_map("free", blocking))
    await objects.delete("owner", DeleteOptions(propagation_policy="Foreground"))
    await until_gone(server.client, CONFIG_MAP, "one", "free")
    assert (await objects.get("owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await objects.patch("held", {"metadata": {"finalizers": None}})
    await until_gone(server.client, CONFIG_MAP, "one", "owner")
    left = await objects.get("held-but-not-blocking")
    assert left["metadata"]["deletionTimestamp"]
    await objects.patch("held-but-not-blocking", {"metadata": {"finalizers": None}})


async def test_an_owner_in_another_namespace_is_none_and_an_event_says_so(server: ControlledServer) -> None:
    elsewhere = await config_maps(server, "two").create(config_map("elsewhere"))
    events = server.client.resource("v1", "events", namespace="one")
    since = (await events.list())["metadata"]["resourceVersion"]
    astray = await config_maps(server).create(config_map("astray", owned_by(elsewhere)))
    await until_gone(server.client, CONFIG_MAP, "one", "astray")
    async with await events.watch(ListOptions(resource_version=since, timeout_seconds=PATIENCE)) as watch:
        event = (await anext(aiter(watch))).object
    identity = f"[v1/ConfigMap, namespace: one, name: elsewhere, uid: {uid_of(elsewhere)}]"
    assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
    assert event["message"] == f'ownerRef {identity} does not exist in namespace "one"'
    assert event["involvedObject"]["uid"] == uid_of(astray)
    assert event["source"]["component"] == "garbage-collector-controller"


async def test_a_cluster_scoped_object_with_a_namespaced_owner_is_left_alone(server: ControlledServer) -> None:
    roles = server.client.resource(CLUSTER_ROLE.api_version, CLUSTER_ROLE.plural)
    nobody = {"metadata": {"name": "nobody", "uid": "6d8ac9a4-4a5c-4b1d-8a3c-3f0c8a6f3d11"}}
    await roles.create(config_map("stray", owned_by(nobody)))
    await roles.create(config_map("lost", {**owned_by(nobody), "kind": "Node", "uid": "0"}))
    await until_gone(server.client, CLUSTER_ROLE, "", "lost")
    assert await roles.get("stray")


async def test_a_new_custom_resource_joins_at_once_as_owner_and_as_dependent(server: ControlledServer) -> None:
    await server.install(definition())
    widgets = server.client.resource("example.com/v1", "widgets", namespace="one")
    owner = await widgets.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    below = {"apiVersion": "example.com/v1", "kind": "Widget"} | config_map("below", owned_by(owner, WIDGET))
    await config_maps(server).create(config_map("of-widget", owned_by(await widgets.create(below), WIDGET)))
    await widgets.delete("w")
    await until_gone(server.client, WIDGET, "one", "below")
    await until_gone(server.client, CONFIG_MAP, "one", "of-widget")


async def test_an_object_is_deleted_if_its_owner_was_replaced_under_the_same_name(server: ControlledServer) -> None:
    objects = config_maps(server)
    first = await objects.create(config_map("same-name"))
    await objects.delete("same-name", DeleteOptions(propagation_policy="Background"))
    await objects.create(config_map("same-name"))
    await objects.create(config_map("of-the-first", owned_by(first)))
    await until_gone(server.client, CONFIG_MAP, "one", "of-the-first")
    assert await objects.get("same-name")


async def test_an_object_of_an_unknown_kind_of_owner_is_kept(server: ControlledServer) -> None:
    objects = config_maps(server)
    unknown = {"apiVersion": "nobody.example.com/v1", "kind": "Unknown", "name": "x", "uid": "u"}
    await objects.create(config_map("waits", unknown))
    gone = {**unknown, "apiVersion": "v1", "kind": "ConfigMap", "uid": "v"}
    await objects.create(config_map("goes", gone))
    await until_gone(server.client, CONFIG_MAP, "one", "goes")
    assert await objects.get("waits")
