"""Refusals before a handler is asked, as clients see them."""

from __future__ import annotations

from pathlib import Path

from whole_server import CONFIG_MAPS, whole_server

POD = "/api/v1/namespaces/default/pods/waits"


async def test_who_is_refused_goes_by_the_content_type(tmp_path: Path) -> None:
    async with whole_server(tmp_path, authorization_mode="RBAC") as api:
        forbidden = await api.request("GET", CONFIG_MAPS, impersonate_user="nobody")
        nameless = await api.request("GET", CONFIG_MAPS, impersonate_group="some")
        found = await api.request("GET", CONFIG_MAPS)
    assert (forbidden.status, forbidden.headers["x-content-type-options"]) == (403, "nosniff")
    assert (nameless.status, nameless.headers["x-content-type-options"]) == (400, "nosniff")
    assert "x-content-type-options" not in found.headers


async def test_a_pod_without_a_node_has_no_content_in_its_log(tmp_path: Path) -> None:
    pod = {"metadata": {"name": "waits"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with whole_server(tmp_path) as api:
        assert (await api.request("POST", "/api/v1/namespaces/default/pods", pod)).status == 201
        answer = await api.request("GET", f"{POD}/log")
    assert (answer.status, answer.body, "content-type" in answer.headers) == (204, b"", False)


async def test_a_path_with_a_verb_and_no_resource_has_no_request_info(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        answer = await api.request("GET", "/api/v1/watch?a=b")
    assert (answer.status, answer.headers["content-type"]) == (500, "text/plain; charset=utf-8")
    assert "cache-control" not in answer.headers
    assert answer.body.decode() == (
        'Internal Server Error: "/api/v1/watch?a=b": failed to create RequestInfo: '
        "unable to determine kind and namespace from url, /api/v1/watch?a=b\n"
    )
