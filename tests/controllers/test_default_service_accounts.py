"""serviceaccount-controller: every namespace has its default account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, uid_of


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer) -> ControllerManager:
    return ControllerManager(server.client, enabled(["serviceaccount"]), registry=CollectorRegistry())


def accounts(server: ControlledServer, namespace: str) -> ResourceClient:
    return server.client.resource("v1", "serviceaccounts", namespace=namespace)


async def test_namespaces_old_and_new_get_a_default_account(server: ControlledServer) -> None:
    async with running(manager(server)):
        for namespace in ("default", "kube-system"):
            await until(accounts(server, namespace), "default")
        await server.create_namespace("new")
        made = await until(accounts(server, "new"), "default")
    assert made["metadata"]["namespace"] == "new"


async def test_a_default_account_that_is_deleted_comes_back_and_others_do_not(server: ControlledServer) -> None:
    await accounts(server, "default").create({"metadata": {"name": "robot"}})
    async with running(manager(server)):
        first = await until(accounts(server, "default"), "default")
        await accounts(server, "default").delete("robot")
        await accounts(server, "default").delete("default")
        again = await until(accounts(server, "default"), "default")
    assert uid_of(again) != uid_of(first)
    with pytest.raises(NotFound):
        await accounts(server, "default").get("robot")


async def test_an_account_deleted_while_no_controller_ran_comes_back(server: ControlledServer) -> None:
    async with running(manager(server)):
        await until(accounts(server, "default"), "default")
    await accounts(server, "default").delete("default")
    async with running(manager(server)):
        await until(accounts(server, "default"), "default")


async def test_a_terminating_namespace_gets_no_account(server: ControlledServer) -> None:
    """Its finalizer keeps it, since no controller takes it away here."""
    await server.create_namespace("ending")
    await server.delete_namespace("ending")
    async with running(manager(server)):
        await until(accounts(server, "kube-system"), "default")
        await server.create_namespace("later")
        await until(accounts(server, "later"), "default")
    listing: Json = await accounts(server, "ending").list()
    assert listing["items"] == []
