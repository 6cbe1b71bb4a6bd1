"""A real kube-apiserver takes over a store that was moved to etcd, and we take it back. It runs where a binary is named
by PILOTHOUSE_TEST_KUBE_APISERVER."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_resources import WIDGETS, definition, eventually, install, widget
from etcd_process import EtcdProcess
from kube_apiserver import BINARY, MISSING, KubeApiserver
from whole_server import QUIET, create_config_map

from pilothouse.cli.main import main
from pilothouse.client import Json
from pilothouse.testing import API, server

Lists = dict[str, dict[tuple[str, str], Json]]
KEPT_BY_SERVERS = ("/leases", "/endpoints", "/endpointslices", "/apiservices", "/events", "/componentstatuses")


@pytest.mark.skipif(not BINARY, reason=MISSING)
async def test_kube_apiserver_shows_every_object_of_a_moved_store_and_we_show_what_it_wrote(tmp_path: Path) -> None:
    data_dir, etcd = tmp_path / "data", EtcdProcess(tmp_path / "etcd")
    async with server(data_dir=data_dir, **QUIET) as api:
        await create_config_map(api, "ours", data={"a": "1"})
        await install(api, definition())
        await eventually(api, 201, "POST", WIDGETS, widget(spec={"size": 7}))
        ours = await asyncio.to_thread(_lists, _getter(api, asyncio.get_running_loop()))
    etcd.start()
    try:
        command = ["migrate", "--from", f"sqlite:{data_dir}", "--to", f"etcd:{etcd.url}"]
        assert await asyncio.to_thread(main, command) == 0
        kube = await asyncio.to_thread(KubeApiserver, etcd.url, data_dir)
        try:
            theirs = await asyncio.to_thread(_lists, kube.get)
        finally:
            kube.close()
        assert theirs.keys() == ours.keys()
        for path, objects in ours.items():
            assert theirs[path] == objects, path
        async with server(data_dir=data_dir, etcd_servers=etcd.url, **QUIET) as back:
            again = await asyncio.to_thread(_lists, _getter(back, asyncio.get_running_loop()))
            assert again == theirs
    finally:
        etcd.kill()


def _getter(api: API, loop: asyncio.AbstractEventLoop) -> Callable[[str], Json]:
    def get(path: str) -> Json:
        answer: Json = asyncio.run_coroutine_threadsafe(api.request("GET", path), loop).result().json
        return answer

    return get


def _lists(get: Callable[[str], Json]) -> Lists:
    """Every object of every resource by its list and name, without its resource version."""
    groups = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in get("/apis")["groups"])]
    found: Lists = {}
    for group in groups:
        for resource in get(group)["resources"]:
            path = f"{group}/{resource['name']}"
            if "/" in resource["name"] or "list" not in resource["verbs"] or path.endswith(KEPT_BY_SERVERS):
                continue
            found[path] = {_name(item): item for item in get(path)["items"]}
    return found


def _name(item: Json) -> tuple[str, str]:
    del item["metadata"]["resourceVersion"]
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
