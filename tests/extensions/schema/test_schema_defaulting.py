"""Defaults fill what is missing, and what is null where null is no value."""

from __future__ import annotations

from typing import Any

from pilothouse.extensions.schema.compiled import compile_schema

DEFAULTED = {"type": "string", "default": "d"}


def defaulted(properties: dict[str, Any], spec: Any) -> Any:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    obj = {"spec": spec}
    compile_schema(schema, preserve_unknown_fields=False).default(obj)
    return obj["spec"]


def test_missing_fields_and_meaningless_nulls_get_their_default() -> None:
    assert defaulted({"a": DEFAULTED, "b": DEFAULTED}, {"b": None}) == {"a": "d", "b": "d"}


def test_null_stays_in_nullable_fields() -> None:
    assert defaulted({"a": {**DEFAULTED, "nullable": True}}, {"a": None}) == {"a": None}


def test_defaults_inside_of_a_default_are_filled() -> None:
    box = {"type": "object", "default": {}, "properties": {"x": DEFAULTED}}
    assert defaulted({"box": box}, {}) == {"box": {"x": "d"}}


def test_objects_that_are_not_there_get_no_defaults_inside() -> None:
    assert defaulted({"box": {"type": "object", "properties": {"x": DEFAULTED}}}, {}) == {}


def test_items_and_additional_properties_are_filled_each() -> None:
    inner = {"type": "object", "properties": {"x": DEFAULTED}}
    properties = {"l": {"type": "array", "items": inner}, "m": {"type": "object", "additionalProperties": inner}}
    spec = {"l": [{}, {"x": "own"}], "m": {"k": {}}}
    assert defaulted(properties, spec) == {"l": [{"x": "d"}, {"x": "own"}], "m": {"k": {"x": "d"}}}


def test_a_meaningless_null_in_a_list_or_a_map_gets_the_default_of_its_entries() -> None:
    properties = {
        "l": {"type": "array", "items": DEFAULTED},
        "m": {"type": "object", "additionalProperties": DEFAULTED},
        "n": {"type": "array", "items": {**DEFAULTED, "nullable": True}},
        "o": {"type": "object", "additionalProperties": {**DEFAULTED, "nullable": True}},
    }
    spec = {"l": ["own", None], "m": {"k": None, "j": "own"}, "n": [None], "o": {"k": None}}
    assert defaulted(properties, spec) == {
        "l": ["own", "d"],
        "m": {"k": "d", "j": "own"},
        "n": [None],
        "o": {"k": None},
    }


def test_two_objects_never_share_a_default() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {"l": []}}}}
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    compiled.default(first)
    first["spec"]["l"].append(1)
    compiled.default(second)
    assert second == {"spec": {"l": []}}
