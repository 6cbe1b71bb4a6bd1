"""A server that has just started has the objects that kube-apiserver has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from patience import PATIENCE
from recorded import recorded
from whole_server import store_of, whole_server

from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.testing import API

FACTS = recorded("facts") / "objects-after-start.json"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

RECORDED_AT = urlsplit("https://192.0.2.2:6443")
_VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "lastTransitionTime"}
_OF_THE_HOST = {"kubernetes.io/hostname", "holderIdentity", "renewTime", "since"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path, advertise_address=RECORDED_AT.hostname) as server:
        await _until_listed(server)
        yield server


async def _until_listed(api: API) -> None:
    """The endpoints follow when the server is ready; a slice comes last."""
    async with asyncio.timeout(PATIENCE):
        while (await api.request("GET", SLICE)).status != 200:  # noqa: ASYNC110  # each turn is a request
            await asyncio.sleep(0)


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in _VOLATILE}
        return {key: "?" if key in _OF_THE_HOST else _stable(part) for key, part in kept.items()}
    return [_stable(part) for part in value] if isinstance(value, list) else value


def _as_recorded(api: API, value: Any) -> Any:
    """The same with the port that the recorded server had."""
    if isinstance(value, dict):
        return {key: _as_recorded(api, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_recorded(api, part) for part in value]
    ours = urlsplit(api.url)
    return {ours.port: RECORDED_AT.port, ours.netloc: RECORDED_AT.netloc}.get(value, value)


def _by_name(objects: list[Json]) -> dict[str, Json]:
    stable = {f"{namespace_of(obj)}/{name_of(obj)}": _stable(obj) for obj in objects}
    # The name of the lease is made of the host's.
    return {"kube-system/apiserver-?" if "/apiserver-" in name else name: obj for name, obj in stable.items()}


async def test_what_kube_apiserver_has_is_there_and_says_the_same(api: API) -> None:
    for path, objects in json.loads(FACTS.read_text()).items():
        wanted, found = _by_name(objects), _by_name(_as_recorded(api, (await api.request("GET", path)).json["items"]))
        assert wanted.keys() <= found.keys(), path
        for name, obj in wanted.items():
            given = found[name]
            if "/apiserver-" in name:
                obj["metadata"].pop("name")
                obj["metadata"].pop("annotations")  # the address for peers, to which this server proxies nothing
                given["metadata"].pop("name")
            assert given == obj, f"{path} {name}"


async def test_a_server_that_stops_takes_its_address_and_its_lease_away(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        await _until_listed(api)
        assert "subsets" in (await api.request("GET", ENDPOINTS)).json
        assert len((await api.request("GET", LEASES)).json["items"]) == 1
    async with store_of(tmp_path) as store:
        stored = {entry.key: json.loads(entry.value) for entry in (await store.list("/registry/")).entries}
    assert "subsets" not in stored["/registry/services/endpoints/default/kubernetes"]
    assert stored["/registry/endpointslices/default/kubernetes"]["endpoints"] is None
    assert not [key for key in stored if key.startswith("/registry/leases/kube-system/")]


async def test_a_restart_changes_nothing_but_the_lease(tmp_path: Path) -> None:
    paths = ["/api/v1/services", "/api/v1/namespaces", "/api/v1/configmaps", "/apis/networking.k8s.io/v1/ipaddresses"]
    seen = []
    for _ in range(2):
        async with whole_server(tmp_path) as api:
            await _until_listed(api)
            seen.append([(await api.request("GET", path)).json["items"] for path in paths])
    assert seen[0] == seen[1]


async def test_the_hooks_have_the_names_of_kube_apiserver(api: API) -> None:
    lines = (await api.request("GET", "/readyz?verbose")).body.decode().splitlines()
    hooks = {line for line in lines if line.startswith("[+]poststarthook/")}
    known = json.loads(FACTS.with_name("health-checks.json").read_text())["/readyz"]
    assert hooks
    assert hooks <= set(known)
