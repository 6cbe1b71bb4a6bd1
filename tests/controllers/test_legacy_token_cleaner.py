"""legacy-serviceaccount-token-cleaner-controller: unused tokens are marked, and deleted when they stay unused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.clock import RealClock
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json, labels_of, name_of

LAST_USED, INVALID = "kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"
YEAR = timedelta(days=365)


class Later(RealClock):
    """The machine's clock, as it will be after some time."""

    def __init__(self, by: timedelta) -> None:
        self._by = by.total_seconds()

    def wall(self) -> float:
        return datetime.now(UTC).timestamp() + self._by


def day(after: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + after).date().isoformat()


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def cleaner(server: ControlledServer, later: timedelta) -> ControllerManager:
    chosen = enabled(["legacy-service-account-token-cleaner"])
    return ControllerManager(server.client, chosen, registry=CollectorRegistry(), clock=Later(later))


def secrets(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "secrets", namespace="default")


async def make(server: ControlledServer, name: str, **labels: str) -> None:
    meta: Json = {"name": name, "labels": labels}
    meta["annotations"] = {"kubernetes.io/service-account.name": "robot"}
    await secrets(server).create({"metadata": meta, "type": "kubernetes.io/service-account-token"})


async def robot(server: ControlledServer, *refers_to: str) -> None:
    account = {"metadata": {"name": "robot"}, "secrets": [{"name": name} for name in refers_to]}
    await server.client.resource("v1", "serviceaccounts", namespace="default").create(account)


async def test_an_unused_token_is_marked_first_and_deleted_a_period_later(server: ControlledServer) -> None:
    await robot(server, "old", "used", "odd")
    await make(server, "old")
    await make(server, "used", **{LAST_USED: day(YEAR)})
    await make(server, "odd", **{LAST_USED: "yesterday"})
    await make(server, "manual")
    after = YEAR + timedelta(days=3)
    async with running(cleaner(server, after)):
        marked = await until(secrets(server), "old", lambda secret: INVALID in labels_of(secret))
    assert labels_of(marked)[INVALID] == day(after)
    async with running(cleaner(server, 2 * after)):
        await until_gone(secrets(server), "old")
        await until(secrets(server), "used", lambda secret: INVALID in labels_of(secret))
    left = {name_of(item): labels_of(item) for item in (await secrets(server).list())["items"]}
    assert set(left) == {"used", "odd", "manual"}
    assert INVALID not in left["odd"] | left["manual"]


async def test_a_token_that_a_pod_uses_stays(server: ControlledServer) -> None:
    await robot(server, "mounted", "projected", "free")
    for name in ("mounted", "projected", "free"):
        await make(server, name)
    volumes: list[Json] = [
        {"name": "a", "secret": {"secretName": "mounted"}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
    ]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}
    await server.client.resource("v1", "pods", namespace="default").create(pod)
    async with running(cleaner(server, YEAR + timedelta(days=3))):
        await until(secrets(server), "free", lambda secret: INVALID in labels_of(secret))
    for name in ("mounted", "projected"):
        assert INVALID not in labels_of(await secrets(server).get(name))


async def test_no_secret_is_marked_before_a_full_tracking_period(server: ControlledServer) -> None:
    """A year and a day after the start of tracking the first round that may mark comes; one day earlier none does."""
    await robot(server, "old")
    await make(server, "old")
    async with running(cleaner(server, YEAR - timedelta(days=1))), running(cleaner(server, YEAR + timedelta(days=3))):
        marked = await until(secrets(server), "old", lambda secret: INVALID in labels_of(secret))
    assert labels_of(marked)[INVALID] == day(YEAR + timedelta(days=3))
