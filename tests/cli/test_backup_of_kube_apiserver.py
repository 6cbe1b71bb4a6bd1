"""Values that a real kube-apiserver v1.36.4 has written to its etcd, most of them in protobuf, and the objects as it
shows them. They were recorded by `pilothouse backup --etcd-servers`."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from custom_resources import eventually
from whole_server import QUIET

from pilothouse.cli.main import main
from pilothouse.client import Json
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECORDED = Path(__file__).parents[1] / "recorded"
SHOWN: dict[str, Json] = json.loads(gzip.decompress((RECORDED / "kube_apiserver_shown.json.gz").read_bytes()))
PODS = [path for path in SHOWN if "/pods/" in path]


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    data_dir = tmp_path_factory.mktemp("kube") / "data"
    command = ["restore", str(RECORDED / "kube_apiserver.backup"), "--data-dir", str(data_dir)]
    assert await asyncio.to_thread(main, command) == 0
    async with server(data_dir=data_dir, **QUIET) as api:
        yield api


async def test_every_object_is_shown_as_kube_apiserver_shows_it(api: API) -> None:
    assert {obj["kind"] for obj in SHOWN.values()} >= {"Pod", "Secret", "Deployment", "Lamp"}
    for path, expected in SHOWN.items():
        answer = await eventually(api, 200, "GET", path)
        assert _without_version(answer.json) == _without_version(expected), path
        assert int(answer.json["metadata"]["resourceVersion"]) > 1_000_000_000


async def test_lists_have_every_object(api: API) -> None:
    pods = (await api.request("GET", "/api/v1/pods")).json["items"]
    assert len(pods) == len(PODS)


async def test_what_was_protobuf_is_ours_after_the_next_write(api: API) -> None:
    path = next(path for path in SHOWN if "/limitranges/" in path)
    found = (await api.request("GET", path)).json
    written = (await api.request("PUT", path, found)).json
    assert int(written["metadata"]["resourceVersion"]) > int(found["metadata"]["resourceVersion"])
    again = (await api.request("PUT", path, written)).json
    assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


async def test_node_ports_that_kube_apiserver_gave_out_are_taken(api: API) -> None:
    taken = [
        port["nodePort"]
        for obj in SHOWN.values()
        if obj["kind"] == "Service"
        for port in obj["spec"].get("ports", ())
        if port.get("nodePort")
    ]
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": taken[0]}]}
    answer = await api.request("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "x"}, "spec": spec})
    assert answer.status == 422
    assert "provided port is already allocated" in answer.json["message"]


def _without_version(obj: Json) -> Json:
    kept = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": kept}
