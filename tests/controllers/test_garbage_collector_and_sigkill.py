"""A server that is killed while it collects garbage ends where it would have ended without that."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from owner_graphs import CONFIG_MAP, Model, OwnerGraph, Reference, Thing
from restarts import changes_of, kill_after, server_client
from serving_process import ServeProcess

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient

TREES = {0: "Foreground", 1: "Orphan", 2: "Background"}
BYSTANDER = 3
CHILDREN, GRANDCHILDREN = 6, 10


def forest() -> list[Thing]:
    """Three owners with children and grandchildren, and one that shares a grandchild of each; roots come first."""
    things = [Thing(CONFIG_MAP, "default") for _ in (*TREES, BYSTANDER)]
    for root in TREES:
        for _ in range(CHILDREN):
            child = len(things)
            things.append(Thing(CONFIG_MAP, "default", [Reference(root)]))
            things += [Thing(CONFIG_MAP, "default", [Reference(child)]) for _ in range(GRANDCHILDREN - 1)]
            things.append(Thing(CONFIG_MAP, "default", [Reference(child), Reference(BYSTANDER)]))
    return things


def config_maps(own: Client) -> ResourceClient:
    return own.resource("v1", "configmaps", namespace="default")


@pytest.mark.slow
async def test_collection_resumes_after_sigkill(tmp_path: Path) -> None:
    chance, model, things = random.Random(4), Model(), forest()
    server = ServeProcess(tmp_path / "data")
    try:
        async with server_client(server) as own:
            graph = OwnerGraph(own, [CONFIG_MAP])
            for number, thing in enumerate(things):
                await graph.create(number, thing)
                model.things[number] = Thing(thing.kind, thing.namespace, list(thing.owners))
            watch = await changes_of(config_maps(own))
            for number, policy in TREES.items():
                await graph.delete(number, policy)
                model.delete(number, policy)
            server = await kill_after(chance.randrange(4, 40), watch, server)
        model.settle()
        async with server_client(server) as own:
            server = await kill_after(chance.randrange(4, 40), await changes_of(config_maps(own)), server)
        async with server_client(server) as own:
            graph.use(own)
            await graph.until(model)
            await graph.until_looked_after("default")
            assert await graph.state() == graph.expected(model)
    finally:
        server.close()
