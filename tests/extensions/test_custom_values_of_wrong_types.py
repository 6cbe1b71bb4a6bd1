"""Custom resources whose values are not of their schema's types: validation refuses them, whichever way they come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from custom_resources import DEFINITIONS, WIDGETS, definition, install, version, widget
from whole_server import whole_server

from pilothouse.testing import API, Answer

MERGE, JSON_PATCH, APPLY = (
    f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)

ITEM = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "struct": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "string"}}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "number": {"type": "integer"},
    },
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"struct": 3}, 'spec.struct: Invalid value: "integer": spec.struct in body must be of type object: "integer"'),
    (
        {"struct": {"b": "x"}},
        'spec.struct.b: Invalid value: "string": spec.struct.b in body must be of type object: "string"',
    ),
    ({"map": [1]}, 'spec.map: Invalid value: "array": spec.map in body must be of type object: "array"'),
    ({"map": {"a": 1}}, 'spec.map.a: Invalid value: "integer": spec.map.a in body must be of type object: "integer"'),
    ({"keyed": 3}, 'spec.keyed: Invalid value: "integer": spec.keyed in body must be of type array: "integer"'),
    ({"set": "x"}, 'spec.set: Invalid value: "string": spec.set in body must be of type array: "string"'),
    ({"number": {}}, 'spec.number: Invalid value: "object": spec.number in body must be of type integer: "object"'),
]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        await install(running, definition(version(schema={"type": "object", "properties": {"spec": SPEC}})))
        yield running


def causes(answer: Answer) -> list[str]:
    assert answer.status == 422, answer.json
    return [f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"]]


@pytest.mark.parametrize(("spec", "why"), WRONG)
async def test_every_write_of_a_wrong_type_is_refused_by_validation(
    server: API, spec: dict[str, Any], why: str
) -> None:
    assert causes(await server.request("POST", WIDGETS, widget(spec=spec))) == [why]
    fine = {"struct": {"b": {"c": "x"}}, "map": {"a": {"x": 1}}, "keyed": [{"k": "a"}], "set": ["a"], "number": 1}
    created = await server.request("POST", WIDGETS, widget(spec=fine))
    assert created.status == 201
    assert causes(await server.request("PUT", f"{WIDGETS}/a", created.json | {"spec": spec})) == [why]
    (name, value) = next(iter(spec.items()))
    operation = [{"op": "replace", "path": f"/spec/{name}", "value": value}]
    assert causes(await server.request("PATCH", f"{WIDGETS}/a", operation, media=JSON_PATCH)) == [why]
    if not isinstance(value, dict):
        assert causes(await server.request("PATCH", f"{WIDGETS}/a", {"spec": spec}, media=MERGE)) == [why]


async def test_applied_configuration_of_a_wrong_type_is_rejected(server: API) -> None:
    refused = await server.request("PATCH", f"{WIDGETS}/a?fieldManager=m", widget(spec={"struct": 3}), media=APPLY)
    why = "failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.struct: expected map, got &{3}"
    assert (refused.status, refused.json["message"]) == (500, why)


async def test_an_object_that_no_longer_fits_its_schema_loses_its_managed_fields(server: API) -> None:
    created = await server.request("POST", WIDGETS, widget(spec={"number": 1}))
    assert created.json["metadata"]["managedFields"]
    changed = SPEC | {"properties": SPEC["properties"] | {"number": {"type": "object"}}}
    schema = {"type": "object", "properties": {"spec": changed}}
    now = definition(version(schema=schema))
    await server.request("PATCH", f"{DEFINITIONS}/widgets.example.com", now, media=MERGE)
    labelled = {"metadata": {"labels": {"a": "b"}}}
    while (
        (written := await server.request("PATCH", f"{WIDGETS}/a", labelled, media=MERGE))
        .json["metadata"]
        .get("managedFields")
    ):
        labelled["metadata"]["labels"]["a"] += "b"
    assert written.status == 200
    refused = await server.request("PATCH", f"{WIDGETS}/a?fieldManager=m", widget(), media=APPLY)
    live = "failed to convert new object (default/a; example.com/v1, Kind=Widget) to smd typed"
    why = f"failed to create manager for existing fields: {live}: .spec.number: expected map, got &{{1}}"
    assert (refused.status, refused.json["message"]) == (500, why)
