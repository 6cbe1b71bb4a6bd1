"""root-ca-certificate-publisher-controller: every namespace has this server's CA."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until
from controllers_on_a_server import ControlledServer, controlled_server, running
from patience import PATIENCE
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.certificates.root_ca_publisher import RootCA
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import annotations_of

NAME = "kube-root-ca.crt"


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer, ca: str, registry: CollectorRegistry | None = None) -> ControllerManager:
    config = ControllerConfig(root_ca=ca.encode())
    return ControllerManager(
        server.client, enabled(["root-ca-cert-publisher"]), registry=registry or CollectorRegistry(), config=config
    )


def config_maps(server: ControlledServer, namespace: str = "default") -> ResourceClient:
    return server.client.resource("v1", "configmaps", namespace=namespace)


async def test_namespaces_old_and_new_get_the_ca(server: ControlledServer) -> None:
    registry = CollectorRegistry()
    async with running(manager(server, "PEM", registry)):
        await until(config_maps(server), NAME)
        await server.create_namespace("new")
        made = await until(config_maps(server, "new"), NAME)
        await server.create_namespace("last")  # the one worker is through with the others when it comes to this
        await until(config_maps(server, "last"), NAME)
    assert made["data"] == {"ca.crt": "PEM"}
    assert annotations_of(made)["kubernetes.io/description"].startswith("Contains a CA bundle")
    assert registry.get_sample_value("root_ca_cert_publisher_sync_total", {"code": "200"}) in (5, 6)
    assert registry.get_sample_value("root_ca_cert_publisher_sync_duration_seconds_count", {"code": "200"}) in (5, 6)


async def test_foreign_changes_and_deletions_are_reverted(server: ControlledServer) -> None:
    async with running(manager(server, "PEM")):
        await until(config_maps(server), NAME)
        await config_maps(server).patch(NAME, {"data": {"ca.crt": "forged", "more": "x"}})
        await until(config_maps(server), NAME, lambda found: found["data"] == {"ca.crt": "PEM"})
        await config_maps(server).patch(NAME, {"metadata": {"annotations": {"kubernetes.io/description": ""}}})
        await until(config_maps(server), NAME, lambda found: annotations_of(found)["kubernetes.io/description"])
        await config_maps(server).delete(NAME)
        await until(config_maps(server), NAME)


async def test_another_ca_replaces_the_old_one_after_a_restart(server: ControlledServer) -> None:
    async with running(manager(server, "OLD")):
        await until(config_maps(server), NAME)
    async with running(manager(server, "NEW")):
        await until(config_maps(server), NAME, lambda found: found["data"] == {"ca.crt": "NEW"})


async def test_with_no_ca_nothing_is_published(server: ControlledServer) -> None:
    registry = CollectorRegistry()
    managers = ControllerManager(
        server.client, enabled(["root-ca-cert-publisher", "serviceaccount"]), registry=registry
    )
    async with running(managers):
        await until(server.client.resource("v1", "serviceaccounts", namespace="default"), "default")
    assert NAME not in {item["metadata"]["name"] for item in (await config_maps(server).list())["items"]}


async def test_a_file_that_changes_is_followed(tmp_path: Path) -> None:
    file, heard = tmp_path / "ca.crt", asyncio.Event()
    file.write_text("OLD")
    root_ca = RootCA(ControllerConfig(root_ca=b"OLD", root_ca_file=file))
    following = asyncio.create_task(root_ca.follow(heard.set, every=0.001))
    file.unlink()
    file.write_text("NEW")
    await asyncio.wait_for(heard.wait(), PATIENCE)
    assert root_ca.pem == b"NEW"
    following.cancel()
