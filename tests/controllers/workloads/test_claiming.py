"""Owners take orphans that match, and let go of what matches no more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sample_pods import pod as sample_pod
from whole_server import whole_server

from pilothouse.client import Client, Json
from pilothouse.controllers.resources import PODS, REPLICA_SETS
from pilothouse.controllers.workloads.ref_manager import CannotAdopt, ControllerRefManager
from pilothouse.kinds.owners import controller_of, is_controlled_by
from pilothouse.machinery.selectors.labels import from_set


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with whole_server() as api:
        yield api.client(in_process=True)


def replica_set(name: str) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": sample_pod()["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def claiming(client: Client, owner: Json) -> ControllerRefManager:
    async def read_owner() -> Json:
        return await client.for_resource(REPLICA_SETS, namespace="default").get(owner["metadata"]["name"])

    return ControllerRefManager(client, PODS, owner, from_set({"app": "web"}), read_owner=read_owner)


async def create_pod(client: Client, name: str, **labels: str) -> Json:
    return await client.for_resource(PODS, namespace="default").create(
        sample_pod(meta={"name": name, "labels": labels})
    )


async def test_an_orphan_that_matches_is_adopted_and_released_when_it_matches_no_more(client: Client) -> None:
    owner = await client.for_resource(REPLICA_SETS, namespace="default").create(replica_set("web"))
    pods = client.for_resource(PODS, namespace="default")
    matching, other = await create_pod(client, "a", app="web"), await create_pod(client, "b", app="db")
    assert await claiming(client, owner).claim([matching, other]) == [matching]
    adopted = await pods.get("a")
    assert is_controlled_by(adopted, owner)
    adopted["metadata"]["labels"] = {"app": "db"}
    relabelled = await pods.update(adopted)
    assert await claiming(client, owner).claim([relabelled]) == []
    assert controller_of(await pods.get("a")) is None


async def test_an_owner_that_was_replaced_by_another_of_its_name_adopts_nothing(client: Client) -> None:
    sets = client.for_resource(REPLICA_SETS, namespace="default")
    owner = await sets.create(replica_set("web"))
    await sets.delete("web")
    await sets.create(replica_set("web"))
    orphan = await create_pod(client, "a", app="web")
    with pytest.raises(CannotAdopt, match="original default/web is gone"):
        await claiming(client, owner).claim([orphan])
    assert controller_of(await client.for_resource(PODS, namespace="default").get("a")) is None


async def test_objects_of_another_controller_are_left_alone(client: Client) -> None:
    sets = client.for_resource(REPLICA_SETS, namespace="default")
    first, second = await sets.create(replica_set("one")), await sets.create(replica_set("two"))
    await claiming(client, first).claim([await create_pod(client, "a", app="web")])
    taken = await client.for_resource(PODS, namespace="default").get("a")
    assert await claiming(client, second).claim([taken]) == []
