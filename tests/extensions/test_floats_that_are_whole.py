"""Numbers of custom resources know whether they were written as integers, until they are stored."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest
from custom_resources import WIDGETS, definition, install, version
from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.testing import API

MERGE, APPLY, YAML = "application/merge-patch+json", "application/apply-patch+yaml", "application/yaml"
RULED = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}
ITEM = {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}}
SPEC: Json = {
    "type": "object",
    "properties": {
        "ruled": RULED,
        "number": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "self == 3"}]},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": ITEM,
        },
    },
}
NO_INT = "invalid data, expected int, got float64 evaluating rule: self > 1"
NO_INT_OR_STRING = "invalid data, expected XIntOrString value to be either a string or integer evaluating rule"


@pytest.fixture
async def server() -> AsyncIterator[API]:
    async with whole_server() as running:
        await install(running, definition(version(schema={"type": "object", "properties": {"spec": SPEC}})))
        yield running


def sent(spec: str, name: str = "a") -> orjson.Fragment:
    text = f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{spec}}}'
    return orjson.Fragment(text)


@pytest.mark.parametrize(
    ("spec", "why"), [('{"ruled":3.0}', NO_INT), ('{"ruled":3e0}', NO_INT), ('{"port":3.0}', NO_INT_OR_STRING)]
)
async def test_a_rule_about_an_integer_cannot_read_a_float(server: API, spec: str, why: str) -> None:
    refused = await server.request("POST", WIDGETS, sent(spec))
    assert (refused.status, refused.json["details"]["causes"][0]["message"].partition(why)[1]) == (422, why)


@pytest.mark.parametrize(
    ("method", "target", "media"), [("POST", WIDGETS, YAML), ("PATCH", f"{WIDGETS}/a?fieldManager=m", APPLY)]
)
async def test_in_yaml_a_whole_number_is_an_integer_however_it_is_written(
    server: API, method: str, target: str, media: str
) -> None:
    made = await server.request(method, target, sent('{"ruled":3.0}'), media=media)
    assert (made.status, made.json["spec"]) == (201, {"ruled": 3})


async def test_a_whole_float_is_stored_as_an_integer_from_which_the_same_float_differs(server: API) -> None:
    made = await server.request("POST", WIDGETS, sent('{"number":1.0}'))
    again = await server.request("PATCH", f"{WIDGETS}/a", orjson.Fragment('{"spec":{"number":1.0}}'), media=MERGE)
    assert b'"number":1}' in made.body
    assert (again.json["spec"], again.json["metadata"]["generation"]) == ({"number": 1}, 2)


async def test_keys_of_a_list_differ_when_one_is_a_float(server: API) -> None:
    made = await server.request("POST", WIDGETS, sent('{"keyed":[{"k":1},{"k":1.0}]}'))
    assert made.status == 201


async def test_a_dry_run_shows_the_number_that_would_be_stored(server: API) -> None:
    made = await server.request("POST", f"{WIDGETS}?dryRun=All", sent('{"number":1.0}'))
    assert b'"number":1}' in made.body


async def test_rules_are_checked_on_an_object_of_another_kind_whose_values_are_not(server: API) -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "a"}, "spec": {"ruled": {}}}
    refused = await server.request("POST", WIDGETS, other)
    why = "invalid data, expected int, got map[string]interface {} evaluating rule: self > 1"
    assert [(cause["field"], cause["message"]) for cause in refused.json["details"]["causes"]] == [
        ("kind", 'Invalid value: "Odd": must be Widget'),
        ("spec.ruled", f'Invalid value: "integer": {why}'),
    ]


async def test_an_empty_list_counts_for_the_generation(server: API) -> None:
    await server.request("POST", WIDGETS, sent("{}"))
    changed = await server.request("PATCH", f"{WIDGETS}/a", {"spec": {"keyed": []}}, media=MERGE)
    assert (changed.json["spec"], changed.json["metadata"]["generation"]) == ({"keyed": []}, 2)
