"""Users of a server that leaves it to a real cluster to say who they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import orjson
import pytest
from delegating_server import (
    NAME,
    Answer,
    DelegatingServer,
    allow_delegation,
    allow_everybody_to_ask,
    delegating_server,
)
from patience import PATIENCE
from tls_backends import Pki

from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.errors import StartFailed
from pilothouse.testing import API, server

MAP = "extension-apiserver-authentication"


@pytest.fixture
async def cluster() -> AsyncIterator[API]:
    async with server(authorization_mode="RBAC") as api:
        await allow_everybody_to_ask(api.client(in_process=True))
        yield api


@pytest.fixture
async def extension(cluster: API, tmp_path: Path) -> AsyncIterator[DelegatingServer]:
    await allow_delegation(cluster.client(in_process=True))
    async with delegating_server(cluster, tmp_path) as running:
        yield running


def _maps(api: API) -> ResourceClient:
    return api.client(in_process=True).resource("v1", "configmaps", namespace="kube-system")


def _proxy(api: API) -> KeyPair:
    paths = CertificatePaths.under(api.home.data_dir)
    return KeyPair(paths.front_proxy_client_cert, paths.front_proxy_client_key)


def _pair_of(api: API, name: str) -> KeyPair:
    kubeconfig = api.as_user(name).kubeconfig
    return KeyPair(kubeconfig.with_suffix(".crt"), kubeconfig.with_suffix(".key"))


async def _until(ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> None:
    """What the cluster says takes a moment to arrive."""
    async with asyncio.timeout(PATIENCE):
        while not holds(await ask()):
            continue


async def test_users_come_by_front_proxy_certificate_or_token_and_are_anonymous_without(
    cluster: API, extension: DelegatingServer
) -> None:
    proxied = await extension.ask(pair=_proxy(cluster), x_remote_user="ann", x_remote_group="developers")
    assert orjson.loads(proxied.body)["user"] == {"username": "ann", "groups": ["developers", "system:authenticated"]}
    assert (await extension.ask(pair=_pair_of(cluster, "bob"))).user == "bob"
    assert (await extension.ask(token=cluster.token)).user == "pilothouse-testing"
    assert (await extension.ask()).user == "system:anonymous"


async def test_headers_of_a_front_proxy_mean_nothing_from_others(cluster: API, extension: DelegatingServer) -> None:
    assert (await extension.ask(x_remote_user="ann")).user == "system:anonymous"
    assert (await extension.ask(pair=_pair_of(cluster, "bob"), x_remote_user="ann")).user == "bob"


async def test_a_token_is_reviewed_once_and_wrong_ones_are_refused(cluster: API, extension: DelegatingServer) -> None:
    assert [(await extension.ask(token=cluster.token)).status for _ in range(3)] == [200] * 3
    assert extension.line.reviews("tokenreviews") == [{"token": cluster.token}]
    assert (await extension.ask(token="wrong")).status == 401


async def test_a_review_that_failed_is_not_remembered(cluster: API, extension: DelegatingServer) -> None:
    extension.line.is_cut = True
    assert (await extension.ask(token=cluster.token)).status == 401
    extension.line.is_cut = False
    assert (await extension.ask(token=cluster.token)).status == 200


async def test_changed_headers_and_names_count_at_once(cluster: API, extension: DelegatingServer) -> None:
    data = {"requestheader-username-headers": json.dumps(["X-Customer"])}
    await _maps(cluster).patch(MAP, {"data": data})

    async def ask() -> Answer:
        return await extension.ask(pair=_proxy(cluster), x_customer="ann")

    await _until(ask, lambda answer: answer.status == 200 and answer.user == "ann")
    assert "x-customer" not in orjson.loads((await ask()).body)["headers"]
    await _maps(cluster).patch(MAP, {"data": {"requestheader-allowed-names": json.dumps(["somebody-else"])}})
    await _until(ask, lambda answer: answer.status == 401)


async def test_rotated_authorities_count_without_a_restart(
    cluster: API, extension: DelegatingServer, tmp_path: Path
) -> None:
    new = Pki.make(tmp_path / "new", "new-ca")
    pair = new.client("carla")
    assert (await extension.ask(pair=pair)).status == 401
    await _maps(cluster).patch(MAP, {"data": {"client-ca-file": new.ca_file.read_text()}})
    await _until(lambda: extension.ask(pair=pair), lambda answer: answer.status == 200 and answer.user == "carla")
    assert (await extension.ask(pair=_pair_of(cluster, "bob"))).status == 401


async def test_what_makes_no_sense_or_is_gone_leaves_the_last_state(cluster: API, extension: DelegatingServer) -> None:
    bad = {"client-ca-file": "no certificate", "requestheader-group-headers": "no list"}
    await _maps(cluster).patch(MAP, {"data": bad | {"requestheader-username-headers": json.dumps(["X-Customer"])}})
    await _maps(cluster).delete(MAP)
    await _maps(cluster).create({"metadata": {"name": MAP}, "data": {"requestheader-username-headers": '["X-Later"]'}})

    async def ask() -> Answer:
        return await extension.ask(pair=_proxy(cluster), x_later="ann")

    await _until(ask, lambda answer: answer.status == 200 and answer.user == "ann")
    assert (await extension.ask(pair=_pair_of(cluster, "bob"))).user == "bob"


async def test_a_cluster_that_says_nothing_yet_is_followed(cluster: API, tmp_path: Path) -> None:
    await allow_delegation(cluster.client(in_process=True))
    before = await _maps(cluster).get(MAP)
    await _maps(cluster).delete(MAP)
    async with delegating_server(cluster, tmp_path) as extension:
        pair = _pair_of(cluster, "bob")
        assert (await extension.ask(pair=pair)).status == 401
        assert (await extension.ask(token=cluster.token)).status == 200
        await _maps(cluster).create({"metadata": {"name": MAP}, "data": before["data"]})
        await _until(lambda: extension.ask(pair=pair), lambda answer: answer.status == 200 and answer.user == "bob")


async def test_a_server_without_its_role_is_told_which_binding_is_missing(cluster: API, tmp_path: Path) -> None:
    with pytest.raises(StartFailed) as error:
        async with delegating_server(cluster, tmp_path):
            raise AssertionError
    assert f'User "{NAME}" cannot get resource "configmaps"' in str(error.value)
    assert str(error.value).endswith(
        "A RoleBinding to the Role extension-apiserver-authentication-reader is missing: "
        "kubectl create rolebinding -n kube-system wardle-api-auth-reader "
        "--role=extension-apiserver-authentication-reader --serviceaccount=wardle:api"
    )
