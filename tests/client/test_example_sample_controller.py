"""The sample controller against a live server: no death, its own or the server's, leaves a Foo without Deployment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from example_process import example
from live_server import LiveServer
from patience import PATIENCE

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.objects import Json, uid_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXAMPLE = "sample_controller.py"
FOO = "samplecontroller.k8s.io/v1alpha1"


class Cluster:
    def __init__(self, client: Client) -> None:
        self.foos = client.resource(FOO, "foos", namespace="default")
        self.deployments = client.resource("apps/v1", "deployments", namespace="default")
        self.events = client.resource("v1", "events", namespace="default")
        self.definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")

    async def served(self) -> None:
        name = "foos.samplecontroller.k8s.io"
        await until(self.definitions, name, lambda crd: "True" in established(crd))

    async def create(self, name: str, **spec: Any) -> Json:
        kind = {"apiVersion": FOO, "kind": "Foo"}
        return await self.foos.create(kind | {"metadata": {"name": name}, "spec": {"deploymentName": name, **spec}})

    async def owned(self, foo: Json, replicas: int) -> Json:
        """The Foo's Deployment, as soon as it has this size."""
        name = foo["spec"]["deploymentName"]
        return await until(
            self.deployments, name, lambda found: owner(found) == uid_of(foo) and found["spec"]["replicas"] == replicas
        )

    async def event(self, reason: str, about: Json) -> Json:
        selector = f"reason={reason},involvedObject.name={about['metadata']['name']}"
        return await first(self.events, ListOptions(field_selector=selector), lambda event: True)


def established(crd: Json) -> list[str]:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return [each["status"] for each in conditions if each["type"] == "Established"]


def owner(obj: Json) -> str:
    references = obj["metadata"].get("ownerReferences") or [{}]
    return str(references[0].get("uid", ""))


async def until(collection: ResourceClient, name: str, condition: Any) -> Json:
    return await first(collection, ListOptions(field_selector=f"metadata.name={name}"), condition)


async def first(collection: ResourceClient, options: ListOptions, condition: Any) -> Json:
    """Of the objects that are there or come, the first with this condition."""
    async with asyncio.timeout(PATIENCE), await collection.watch(options) as watch:
        async for event in watch:
            if event.type in ("ADDED", "MODIFIED") and condition(event.object):
                return event.object
    raise AssertionError("the watch ended")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveServer]:
    # The server's own controller would overwrite the status that a test writes, sometimes before anybody sees it.
    flags = "--controllers=*,-deployment-controller"
    async with LiveServer(tmp_path_factory.mktemp("server"), flags).run() as running:
        yield running


async def test_a_foo_keeps_its_deployment_through_every_death(live: LiveServer) -> None:
    async with connect(live.config) as client:
        cluster = Cluster(client)
        async with example(EXAMPLE, live) as first_one:
            await cluster.served()
            foo = await cluster.create("web", replicas=1)
            made = await cluster.owned(foo, 1)
            assert made["metadata"]["ownerReferences"][0] | {"uid": ""} == {
                "apiVersion": FOO,
                "kind": "Foo",
                "name": "web",
                "uid": "",
                "controller": True,
                "blockOwnerDeletion": True,
            }
            await cluster.deployments.patch("web", {"spec": {"replicas": 7}})
            await cluster.owned(foo, 1)
            await cluster.foos.patch("web", {"spec": {"replicas": 2}})
            await cluster.owned(foo, 2)
            available = {"status": {"availableReplicas": 2, "readyReplicas": 2, "replicas": 2}}
            await cluster.deployments.patch("web", available, subresource="status")
            await until(cluster.foos, "web", lambda found: found.get("status") == {"availableReplicas": 2})
            await cluster.event("Synced", foo)
            first_one.kill()
            await first_one.wait()
        await cluster.deployments.delete("web")
        async with example(EXAMPLE, live):
            again = await cluster.owned(foo, 2)
            assert uid_of(again) != uid_of(made)
            await live.kill()
            await live.start()
            await cluster.deployments.delete("web")
            assert uid_of(await cluster.owned(foo, 2)) != uid_of(again)


async def test_a_deployment_of_somebody_else_is_left_alone(live: LiveServer) -> None:
    async with connect(live.config) as client, example(EXAMPLE, live) as running:
        cluster = Cluster(client)
        await cluster.served()
        theirs = await cluster.deployments.create(
            {
                "metadata": {"name": "shop"},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "x"}},
                    "template": {
                        "metadata": {"labels": {"app": "x"}},
                        "spec": {"containers": [{"name": "x", "image": "x"}]},
                    },
                },
            }
        )
        foo = await cluster.create("shop", replicas=1)
        event = await cluster.event("ErrResourceExists", foo)
        assert (event["type"], event["message"]) == (
            "Warning",
            'Resource "shop" already exists and is not managed by Foo',
        )
        assert (await cluster.deployments.get("shop"))["metadata"]["uid"] == uid_of(theirs)
        await cluster.deployments.delete("shop")
        await cluster.owned(foo, 1)
        running.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await running.wait() == 0
