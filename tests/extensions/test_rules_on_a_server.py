"""Rules of custom resources through a whole server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from custom_resources import DEFINITIONS, WIDGETS, definition, install, version, widget
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

MERGE = "application/merge-patch+json"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


def with_numbers(*rules: Json) -> Json:
    numbers: Json = {"type": "array", "items": {"type": "integer"}, "maxItems": 1000}
    spec: Json = {"type": "object", "properties": {"numbers": numbers, "color": {"type": "string"}}}
    numbers["x-kubernetes-validations"] = list(rules)
    return definition(version(schema={"type": "object", "properties": {"spec": spec}}))


async def test_expensive_rule_is_aborted_without_blocking_other_requests(server: API) -> None:
    await install(server, with_numbers({"rule": "self.all(x, self.all(y, x + y >= 0))"}))
    assert (await server.request("POST", WIDGETS, widget(spec={"numbers": [1, 2]}))).status == 201
    dear = asyncio.create_task(server.request("POST", WIDGETS, widget("b", spec={"numbers": list(range(1000))})))
    await asyncio.sleep(0)
    assert (await server.request("GET", f"{WIDGETS}/a")).status == 200
    assert not dear.done()
    answer = await dear
    assert answer.status == 422
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in answer.json["message"]


async def test_a_request_that_was_begun_under_the_old_definition_is_answered(server: API) -> None:
    rules = {"rule": "self.all(x, self.all(y, x + y >= 0))"}
    await install(server, with_numbers(rules))
    assert (await server.request("GET", WIDGETS)).status == 200
    dear = asyncio.create_task(server.request("POST", WIDGETS, widget("b", spec={"numbers": list(range(300))})))
    await asyncio.sleep(0)
    changed = with_numbers(rules)
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"] = {"color": "new"}
    path = f"{DEFINITIONS}/{changed['metadata']['name']}"
    patched = await server.request("PATCH", path, {"spec": {"versions": changed["spec"]["versions"]}}, media=MERGE)
    assert patched.status == 200, patched.body
    assert not dear.done()
    assert (await dear).status == 201
    for _ in range(1000):  # Until the new definition is served.
        created = await server.request("POST", f"{WIDGETS}?dryRun=All", widget("c"))
        if "spec" in created.json:
            break
        await asyncio.sleep(0)
    assert created.json["spec"] == {"color": "new"}
    assert (await server.request("GET", f"{WIDGETS}/b")).json["spec"]["numbers"][299] == 299


async def test_tolerated_rule_violation_is_a_warning(server: API) -> None:
    await install(server, with_numbers())
    await server.request("POST", WIDGETS, widget(spec={"numbers": [7]}))
    stricter = with_numbers({"rule": "self.all(x, x < 5)", "message": "too large"})
    name = stricter["metadata"]["name"]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    patched = await server.request("PATCH", path, {"spec": {"versions": stricter["spec"]["versions"]}}, media=MERGE)
    assert patched.status == 200, patched.body
    for number in range(1000):  # Until the new definition is served.
        answer = await server.request("PATCH", f"{WIDGETS}/a", {"spec": {"color": f"red{number}"}}, media=MERGE)
        if "warning" in answer.headers:
            break
    assert answer.headers["warning"] == '299 - "spec.numbers: Invalid value: too large"'
    changed = await server.request("PATCH", f"{WIDGETS}/a", {"spec": {"numbers": [8]}}, media=MERGE)
    assert (changed.status, changed.json["details"]["causes"][0]["field"]) == (422, "spec.numbers")
