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


UNDECLARED = ".spec.{}: field not declared in schema"
NEW = "failed to convert new object"
PRUNE = "failed to prune fields: failed to convert merged object to last applied version"


@pytest.mark.parametrize(
    ("first", "second", "spec", "reason"),
    [
        ("v1", "v1beta1", {"beta": "y"}, UNDECLARED.format("beta")),
        ("v1", "v1beta1", {"other": 5}, ".spec.other: expected string, got"),
        ("v1beta1", "v1", {"stored": "y"}, UNDECLARED.format("stored")),
    ],
)
async def test_apply_of_a_field_that_does_not_fit_the_version_of_a_manager_names_the_failed_step(
    server: API, first: str, second: str, spec: Json, reason: str
) -> None:
    assert (await patch(server, first, "one", both="x")).status == 201
    for manager, step in (("one", PRUNE), ("two", NEW)):
        refused = await patch(server, second, manager, **spec)
        assert (refused.status, refused.json["message"].startswith(f"{step}: {reason}")) == (500, True), refused.body
    assert (await patch(server, second, "two", both="x")).status == 200


async def test_update_of_a_field_that_the_version_of_a_manager_does_not_declare_drops_all_managers(server: API) -> None:
    assert (await patch(server, "v1beta1", "first", both="x")).status == 201
    updated = await patch(server, "v1", "second", media="merge-patch+json", stored="y")
    assert (updated.status, updated.json["spec"]) == (200, {"both": "x", "stored": "y"})
    assert "managedFields" not in updated.json["metadata"]


async def test_list_in_pages_shows_the_fields_of_the_requested_version_only(server: API) -> None:
    await server.request("POST", widgets("v1"), widget(spec={"both": "x", "stored": "y"}))
    for query in ("", "?limit=1", "?resourceVersion=0"):
        (item,) = (await server.request("GET", f"{widgets('v1beta1')}{query}")).json["items"]
        assert (item["apiVersion"], item["spec"]) == ("example.com/v1beta1", {"both": "x"})
