"""Bootstrap tokens: the public cluster-info is signed with them, and they are deleted when they expire."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.bootstrap.tokens import time_remaining
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.times import format_time

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer, *names: str) -> ControllerManager:
    return ControllerManager(server.client, enabled(names), registry=CollectorRegistry())


def secrets(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "secrets", namespace="kube-system")


def cluster_info(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "configmaps", namespace="kube-public")


async def make(server: ControlledServer, token: str, *, name: str = "", **data: str) -> None:
    values = {"token-id": token, "token-secret": "s" * 32, "usage-bootstrap-signing": "true", **data}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    secret: Json = {"metadata": {"name": name or f"bootstrap-token-{token}"}, "data": encoded}
    await secrets(server).create({**secret, "type": "bootstrap.kubernetes.io/token"})


def signers(config_map: Json) -> set[str]:
    return {key.removeprefix("jws-kubeconfig-") for key in config_map["data"] if key != "kubeconfig"}


async def test_cluster_info_has_the_signatures_of_the_tokens_that_there_are(server: ControlledServer) -> None:
    await make(server, "aaaaaa")
    await make(server, "cccccc", **{"usage-bootstrap-signing": "false"})
    await make(server, "dddddd", expiration=format_time(datetime.now(UTC) - timedelta(hours=1)))
    await make(server, "eeeeee", name="bootstrap-token-ffffff")
    async with running(manager(server, "bootstrapsigner")):
        await cluster_info(server).create({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "where"}})
        await until(cluster_info(server), "cluster-info", lambda found: signers(found) == {"aaaaaa"})
        await make(server, "bbbbbb")
        both = await until(cluster_info(server), "cluster-info", lambda found: signers(found) == {"aaaaaa", "bbbbbb"})
        await secrets(server).delete("bootstrap-token-aaaaaa")
        await until(cluster_info(server), "cluster-info", lambda found: signers(found) == {"bbbbbb"})
    header, nothing, signature = both["data"]["jws-kubeconfig-aaaaaa"].split(".")
    content = base64.urlsafe_b64encode(b"where").rstrip(b"=").decode()
    whole = f"{header}.{content}.{signature}"
    assert not nothing
    assert jwt.PyJWS().decode(whole, "s" * 32, algorithms=["HS256"]) == b"where"
    assert jwt.get_unverified_header(whole) == {"alg": "HS256", "kid": "aaaaaa"}


async def test_a_new_content_is_signed_anew(server: ControlledServer) -> None:
    await make(server, "aaaaaa")
    async with running(manager(server, "bootstrapsigner")):
        await cluster_info(server).create({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "old"}})
        first = await until(cluster_info(server), "cluster-info", signers)
        forged = {"data": {"kubeconfig": "new", "jws-kubeconfig-zzzzzz": "x"}}
        await cluster_info(server).patch("cluster-info", forged)
        again = await until(cluster_info(server), "cluster-info", lambda found: signers(found) == {"aaaaaa"})
    assert again["data"]["kubeconfig"] == "new"
    assert again["data"]["jws-kubeconfig-aaaaaa"] != first["data"]["jws-kubeconfig-aaaaaa"]


async def test_tokens_are_deleted_when_they_expire(server: ControlledServer) -> None:
    soon = format_time(datetime.now(UTC) + timedelta(seconds=2))
    await make(server, "aaaaaa", expiration="2020-01-01T00:00:00Z")
    await make(server, "bbbbbb", expiration=soon)
    await make(server, "cccccc", expiration="whenever")
    await make(server, "dddddd")
    async with running(manager(server, "tokencleaner")):
        gone = (f"bootstrap-token-{token}" for token in ("aaaaaa", "bbbbbb", "cccccc"))
        await asyncio.gather(*(until_gone(secrets(server), name) for name in gone))
    assert [name_of(item) for item in (await secrets(server).list())["items"]] == ["bootstrap-token-dddddd"]


@pytest.mark.parametrize(
    ("expiration", "seconds"),
    [
        ("", None),
        ("2026-05-01T12:00:30Z", 30),
        ("2026-05-01T12:00:00Z", 0),
        ("2026-05-01T14:01:00+02:00", 60),
        ("x", 0),
    ],
)
def test_a_token_lives_until_it_expires(expiration: str, seconds: float | None) -> None:
    secret = {"data": {"expiration": base64.b64encode(expiration.encode()).decode()}}
    assert time_remaining(secret, NOW) == seconds
