"""serviceaccount-token-controller: secrets that ask for a token get one, and go with their account."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import jwt
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry
from service_account_tokens import write_key

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER
from pilothouse.controllers.table import enabled
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer
from pilothouse.machinery.objects import Json, annotations_of, uid_of

NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    write_key(tmp_path / "tokens.key")
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer, folder: Path, ca: str = "PEM") -> ControllerManager:
    issuer = TokenIssuer(LEGACY_ISSUER, SigningKey(folder / "tokens.key"))
    config = ControllerConfig(root_ca=ca.encode(), sign_token=issuer.sign)
    chosen = enabled(["serviceaccount-token"])
    return ControllerManager(server.client, chosen, registry=CollectorRegistry(), config=config)


def secrets(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "secrets", namespace="default")


def accounts(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "serviceaccounts", namespace="default")


def asking(name: str, account: str = "robot", **annotations: str) -> Json:
    return {
        "metadata": {"name": name, "annotations": {NAME: account, **annotations}},
        "type": "kubernetes.io/service-account-token",
    }


def filled(secret: Json) -> bool:
    return bool((secret.get("data") or {}).get("token"))


def data(secret: Json) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


async def test_a_secret_that_names_an_account_gets_its_token_the_ca_and_the_namespace(
    server: ControlledServer, tmp_path: Path
) -> None:
    robot = await accounts(server).create({"metadata": {"name": "robot"}})
    async with running(manager(server, tmp_path)):
        await secrets(server).create(asking("token"))
        secret = await until(secrets(server), "token", filled)
    found = data(secret)
    assert (found["namespace"], found["ca.crt"]) == ("default", "PEM")
    assert jwt.decode(found["token"], options={"verify_signature": False}) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "token",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": uid_of(robot),
    }
    assert annotations_of(secret)[UID] == uid_of(robot)


async def test_an_existing_token_is_kept_and_only_wrong_data_is_written(
    server: ControlledServer, tmp_path: Path
) -> None:
    await accounts(server).create({"metadata": {"name": "robot"}})
    async with running(manager(server, tmp_path)):
        await secrets(server).create(asking("token"))
        first = await until(secrets(server), "token", filled)
    async with running(manager(server, tmp_path, ca="NEW")):
        second = await until(secrets(server), "token", lambda secret: data(secret)["ca.crt"] == "NEW")
        assert data(second)["token"] == data(first)["token"]
        await secrets(server).patch("token", {"data": {"token": None}})
        again = await until(secrets(server), "token", filled)
    assert data(again)["namespace"] == "default"


async def test_secrets_of_accounts_that_are_not_there_are_deleted_and_others_left_alone(
    server: ControlledServer, tmp_path: Path
) -> None:
    """Also while no controller runs to see it."""
    robot = await accounts(server).create({"metadata": {"name": "robot"}})
    await secrets(server).create(asking("orphan", "nobody"))
    await secrets(server).create(asking("stale", **{UID: "another"}))
    await secrets(server).create({"metadata": {"name": "plain", "annotations": {NAME: "nobody"}}})
    await secrets(server).create(asking("good", **{UID: uid_of(robot)}))
    async with running(manager(server, tmp_path)):
        await asyncio.gather(*(until_gone(secrets(server), name) for name in ("orphan", "stale")))
        await until(secrets(server), "good", filled)
        await accounts(server).delete("robot")
        await until_gone(secrets(server), "good")
    assert "plain" in {item["metadata"]["name"] for item in (await secrets(server).list())["items"]}


async def test_an_account_no_longer_refers_to_a_token_that_is_deleted(server: ControlledServer, tmp_path: Path) -> None:
    await accounts(server).create({"metadata": {"name": "robot"}, "secrets": [{"name": "token"}, {"name": "other"}]})
    async with running(manager(server, tmp_path)):
        await secrets(server).create(asking("token"))
        await until(secrets(server), "token", filled)
        await secrets(server).delete("token")
        robot = await until(accounts(server), "robot", lambda account: len(account["secrets"]) == 1)
    assert robot["secrets"] == [{"name": "other"}]
