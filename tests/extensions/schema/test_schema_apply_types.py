"""How server-side apply owns the parts of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.compiled import compile_schema
from pilothouse.machinery.apply.atoms import Unkeyed
from pilothouse.machinery.apply.typed import Typed

TEXT = {"type": "string"}


def owned(properties: dict[str, Any], spec: Any) -> Any:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    atom = compile_schema(schema, preserve_unknown_fields=False).atom
    return Typed(atom, {"spec": spec}, "v1").field_set()["f:spec"]


def test_a_list_of_type_map_is_owned_by_item_with_the_defaults_of_its_keys() -> None:
    item = {"type": "object", "properties": {"n": {"type": "integer"}, "p": {**TEXT, "default": "TCP"}}}
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"], "items": item}
    assert owned({"ports": ports}, {"ports": [{"n": 1}]}) == {
        "f:ports": {'k:{"n":1,"p":"TCP"}': {".": {}, "f:n": {}}},
    }


def test_sets_are_owned_by_item_and_other_lists_whole() -> None:
    properties = {
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "plain": {"type": "array", "items": TEXT},
    }
    assert owned(properties, {"tags": ["a"], "plain": ["b"]}) == {"f:plain": {}, "f:tags": {'v:"a"': {}}}


def test_atomic_objects_are_owned_whole_and_others_by_field() -> None:
    part = {"type": "object", "properties": {"a": TEXT}}
    whole = {**part, "x-kubernetes-map-type": "atomic"}
    assert owned({"whole": whole, "part": part}, {"whole": {"a": "1"}, "part": {"a": "1"}}) == {
        "f:part": {"f:a": {}},
        "f:whole": {},
    }


def test_fields_that_are_kept_although_unknown_are_owned_as_they_come() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": TEXT}}
    assert owned({"free": free}, {"free": {"any": {"x": [1]}, "known": "k"}}) == {
        "f:free": {"f:any": {".": {}, "f:x": {}}, "f:known": {}},
    }


def test_fields_that_the_schema_does_not_have_cannot_be_owned() -> None:
    with pytest.raises(Unkeyed, match="field not declared in schema"):
        owned({"a": TEXT}, {"b": 1})
