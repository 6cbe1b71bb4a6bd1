"""Custom resources are served by the verb of a request, and their discovery whatever the method."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from custom_resources import WIDGETS, definition, install, widget
from whole_server import whole_server

from pilothouse.testing import API


@pytest.fixture
async def server() -> AsyncIterator[API]:
    async with whole_server() as running:
        await install(running, definition())
        yield running


async def test_head_is_answered_as_get_is(server: API) -> None:
    await server.request("POST", WIDGETS, widget())
    found = [(await server.request("HEAD", f"{WIDGETS}{name}")).status for name in ("", "/a", "/absent")]
    assert found == [200, 200, 404]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "FOO"])
async def test_resources_of_a_version_are_shown_by_any_method(server: API, method: str) -> None:
    shown = await server.request(method, "/apis/example.com/v1", accept="application/*")
    assert (shown.status, shown.json["kind"]) == (200, "APIResourceList")


async def test_parameter_with_a_semicolon_is_ignored(server: API) -> None:
    assert (await server.request("GET", f"{WIDGETS}?limit=1;x=2")).status == 200


async def test_reading_a_log_knows_nothing_of_dry_runs(server: API) -> None:
    asked = await server.request("GET", "/api/v1/namespaces/default/pods/x/log?dryRun=All")
    assert (asked.status, asked.json["message"]) == (404, 'pods "x" not found')


async def test_invalid_options_are_rejected_without_their_text(server: API) -> None:
    protobuf = await server.request("DELETE", f"{WIDGETS}/a", {}, media="application/vnd.kubernetes.protobuf")
    status = await server.request("DELETE", "/api/v1/namespaces/default/configmaps/a", {"kind": "Status"})
    assert protobuf.json["message"] == (
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )
    assert status.json["message"] == "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"


async def test_a_token_of_one_character_ends_before_it(server: API) -> None:
    refused = await server.request("GET", "/api/v1/configmaps?continue=x")
    assert refused.json["message"].endswith("illegal base64 data at input byte 0")
