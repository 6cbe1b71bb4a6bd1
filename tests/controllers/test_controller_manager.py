"""The controllers of several servers on one store: one of them runs, and another takes over when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from controllers_on_a_server import ControlledServer, controlled_server, managed, running
from patience import PATIENCE
from prometheus_client import CollectorRegistry

from pilothouse.client.leaderelection.elector import ElectionTimes
from pilothouse.client.rest.options import ListOptions
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.manager import ControllerManager, Election
from pilothouse.controllers.resources import SECRETS
from pilothouse.controllers.table import enabled
from pilothouse.errors import Forbidden

TIMES = ElectionTimes(lease_duration=2.0, renew_deadline=1.0, retry_period=0.05)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def candidate(server: ControlledServer, identity: str) -> ControllerManager:
    return ControllerManager(
        server.client,
        enabled(["namespace"]),
        registry=CollectorRegistry(),
        config=server.config,
        election=Election(identity=identity, times=TIMES),
    )


async def until_leader(server: ControlledServer, identity: str) -> None:
    leases = server.client.resource("coordination.k8s.io/v1", "leases", namespace="kube-system")
    watch = await leases.watch(
        ListOptions(field_selector="metadata.name=kube-controller-manager", timeout_seconds=PATIENCE)
    )
    async with watch:
        async for event in watch:
            if event.object["spec"].get("holderIdentity") == identity:
                return
    raise AssertionError(f"{identity} never led")


async def test_the_next_candidate_takes_over_when_the_leader_stops_and_finishes_its_work(
    server: ControlledServer,
) -> None:
    async with running(candidate(server, "second")) as second:
        await until_leader(server, "second")
        async with running(candidate(server, "first")):
            await server.create_namespace("one")
            await server.delete_namespace("one")
            second.cancel()
            await until_leader(server, "first")
            await server.until_namespace_gone("one")


async def test_a_controller_that_fails_is_started_again(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: asyncio.Queue[int] = asyncio.Queue()

    async def run(context: object) -> None:
        started.put_nowait(1)
        raise RuntimeError("broken")

    monkeypatch.setattr("pilothouse.controllers.namespace.controller.run", run)
    manager = ControllerManager(server.client, enabled(["namespace"]), registry=CollectorRegistry())
    async with running(manager):
        await started.get()
        await started.get()


async def test_a_controller_starts_with_the_first_object_that_concerns_it(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = asyncio.Event()

    async def run(context: object) -> None:
        started.set()

    monkeypatch.setattr("pilothouse.controllers.namespace.controller.run", run)
    waiting = replace(enabled(["namespace"])[0], concerns=(SECRETS,))
    async with running(ControllerManager(server.client, [waiting], registry=CollectorRegistry())):
        namespaces = server.client.resource("v1", "namespaces")
        await namespaces.create({"metadata": {"name": "unconcerned"}})
        assert not started.is_set()
        secrets = server.client.for_resource(SECRETS, namespace="default")
        await secrets.create({"metadata": {"name": "first"}})
        async with asyncio.timeout(PATIENCE):
            await started.wait()


async def test_a_controller_acts_as_its_own_account_which_is_made_for_it(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def run(context: ControllerContext) -> None:
        try:
            await context.client.resource("v1", "secrets", namespace="default").list()
        except Forbidden as error:
            refused.put_nowait(str(error))

    monkeypatch.setattr("pilothouse.controllers.disruption.controller.run", run)
    async with managed(server, "disruption"):
        user = "system:serviceaccount:kube-system:disruption-controller"
        assert user in await asyncio.wait_for(refused.get(), PATIENCE)
        accounts = server.client.resource("v1", "serviceaccounts", namespace="kube-system")
        assert await accounts.get("disruption-controller")
