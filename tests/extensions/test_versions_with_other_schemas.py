"""Custom resources whose versions declare other fields, converted without a webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from custom_resources import definition, install, version, widget
from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.testing import API, Answer

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def _schema(**fields: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


STORED = version("v1", schema=_schema(both=TEXT, other=TEXT, stored=TEXT))
BETA = version("v1beta1", storage=False, schema=_schema(both=TEXT, other=NUMBER, beta=TEXT))


@pytest.fixture
async def server() -> AsyncIterator[API]:
    async with whole_server() as running:
        await install(running, definition(STORED, BETA))
        yield running


def widgets(api_version: str) -> str:
    return f"/apis/example.com/{api_version}/namespaces/default/widgets"


async def patch(server: API, api_version: str, manager: str, media: str = "apply-patch+yaml", **spec: Any) -> Answer:
    path = f"{widgets(api_version)}/a?fieldManager={manager}"
    body = widget(api_version=api_version, spec=spec)
    return await server.request("PATCH", path, body, media=f"application/{media}")


def owners(obj: Json) -> dict[str, Json]:
    return {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in obj["metadata"]["managedFields"]}


async def test_field_of_the_stored_version_is_applied_although_a_manager_uses_a_version_without_it(server: API) -> None:
    assert (await patch(server, "v1beta1", "first", both="x")).status == 201
    applied = await patch(server, "v1", "second", stored="y")
    assert (applied.status, applied.json["spec"]) == (200, {"both": "x", "stored": "y"})
    assert owners(applied.json) == {"first": {"f:both": {}}, "second": {"f:stored": {}}}


async def test_update_of_a_field_of_the_stored_version_keeps_the_managers_of_other_versions(server: API) -> None:
    assert (await patch(server, "v1beta1", "first", both="x")).status == 201
    updated = await patch(server, "v1", "second", media="merge-patch+json", stored="y")
    assert owners(updated.json) == {"first": {"f:both": {}}, "second": {"f:stored": {}}}


async def test_refused_apply_names_the_step_that_failed(server: API) -> None:
    assert (await patch(server, "v1", "first", both="x")).status == 201
    undeclared, other = ".spec.beta: field not declared in schema", ".spec.other: expected string, got"
    prune = "failed to prune fields: failed to convert merged object to last applied version"
    for manager, step in (("first", prune), ("second", "failed to convert new object")):
        for spec, reason in ({"beta": "y"}, undeclared), ({"other": 5}, other):
            refused = await patch(server, "v1beta1", manager, **spec)
            assert (refused.status, refused.json["message"].startswith(f"{step}: {reason}")) == (500, True)


async def test_list_in_pages_shows_the_fields_of_the_requested_version_only(server: API) -> None:
    await server.request("POST", widgets("v1"), widget(spec={"both": "x", "stored": "y"}))
    for query in ("", "?limit=1", "?resourceVersion=0"):
        (item,) = (await server.request("GET", f"{widgets('v1beta1')}{query}")).json["items"]
        assert (item["apiVersion"], item["spec"]) == ("example.com/v1beta1", {"both": "x"})
