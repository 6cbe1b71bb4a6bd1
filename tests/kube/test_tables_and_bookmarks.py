"""Bookmarks of watches, as objects and as tables, and subresources of which no tables can be had."""

from __future__ import annotations

import orjson
import pytest
from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.testing import API

AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
INITIAL = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
END = {"k8s.io/initial-events-end": "true"}


async def bookmark(api: API, path: str, accept: str = "application/json") -> Json:
    """The object of the first bookmark of a watch."""
    response = await api.open("GET", f"{path}{'&' if '?' in path else '?'}{INITIAL}", accept=accept)
    async for chunk in response.chunks():
        for line in chunk.splitlines():
            event = orjson.loads(line)
            if event["type"] == "BOOKMARK":
                obj: Json = event["object"]
                return obj
    raise AssertionError(f"{path} has no bookmark")


async def test_a_bookmark_has_what_conversions_leave_in_an_empty_object() -> None:
    async with whole_server() as api:
        replicas = [
            (await bookmark(api, f"/apis/apps/v1/{kind}"))["spec"]["replicas"]
            for kind in ("deployments", "replicasets", "statefulsets")
        ]
        daemons = await bookmark(api, "/apis/apps/v1/daemonsets")
    assert replicas == [0, 0, 0]
    assert daemons["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "0", **END}


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        ("/api/v1/configmaps", ["", 0, "<unknown>"]),
        ("/api/v1/limitranges", ["", "0001-01-01T00:00:00Z"]),
        ("/apis/apps/v1/deployments", ["", "0/0", 0, 0, "<unknown>", "", "", ""]),
    ],
)
async def test_a_bookmark_is_a_row_of_an_empty_object(path: str, cells: list[object]) -> None:
    async with whole_server() as api:
        table = await bookmark(api, f"{path}?includeObject=None", AS_TABLE)
    [row] = table["rows"]
    assert (row["cells"], row["object"]["metadata"]["annotations"]) == (cells, END)


async def test_only_tables_of_api_services_define_their_columns_in_every_event() -> None:
    async with whole_server() as api:
        services = await bookmark(api, "/apis/apiregistration.k8s.io/v1/apiservices", AS_TABLE)
        namespaces = await bookmark(api, "/api/v1/namespaces", AS_TABLE)
    assert [column["name"] for column in services["columnDefinitions"]] == ["Name", "Service", "Available", "Age"]
    assert namespaces["columnDefinitions"] is None


@pytest.mark.parametrize(
    "path",
    [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/absent/status",
        "/apis/apiregistration.k8s.io/v1/apiservices/absent/status",
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/absent/status",
    ],
)
async def test_no_table_can_be_had_of_some_statuses(path: str) -> None:
    async with whole_server() as api:
        refused = await api.request("GET", path, accept=AS_TABLE)
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")
