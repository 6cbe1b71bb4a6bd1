"""The health of the control plane's parts, asked on every request."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.core.componentstatuses import check_port, check_store


async def test_a_store_that_is_closed_is_unhealthy(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    check = check_store(store)
    assert (await check()).message == "ok"
    await store.close()
    health = await check()
    assert (health.status, bool(health.error)) == ("False", True)


async def test_a_component_that_does_not_listen_is_unhealthy(unused_tcp_port: int) -> None:
    health = await check_port(unused_tcp_port)()
    assert health.status == "False"
    assert health.message.endswith("connect: connection refused")


@pytest.mark.parametrize("selector", ["", "?fieldSelector=metadata.name=etcd-0"])
async def test_component_list_has_no_resource_version(tmp_path: Path, selector: str) -> None:
    async with whole_server(tmp_path) as server:
        answer = await server.request("GET", f"/api/v1/componentstatuses{selector}")
        names = {item["metadata"]["name"] for item in answer.json["items"]}
        assert "etcd-0" in names
        assert answer.json["metadata"] == {}
        assert "v1 ComponentStatus is deprecated in v1.19+" in answer.headers["warning"]
        assert len(names) == (1 if selector else 3)


async def test_unknown_component_is_not_found(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server:
        one = await server.request("GET", "/api/v1/componentstatuses/etcd-0")
        assert one.json["metadata"] == {"name": "etcd-0"}
        assert one.json["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
        missing = await server.request("GET", "/api/v1/componentstatuses/x")
        assert (missing.status, missing.json["message"]) == (404, 'componentstatus "x" not found')
