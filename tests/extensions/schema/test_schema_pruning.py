"""Unknown fields are dropped and named; what a schema keeps stays."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.extensions.schema.compiled import compile_schema
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource

TEXT = {"type": "string"}


def spec_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def pruned(schema: dict[str, Any], spec: Any, **more: Any) -> tuple[dict[str, Any], list[str]]:
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec, **more}
    unknown = compile_schema(schema, preserve_unknown_fields=False).prune(obj)
    return obj, unknown


def test_fields_that_the_schema_does_not_have_are_dropped_and_named() -> None:
    schema = spec_schema(known=TEXT, items={"type": "array", "items": {"type": "object", "properties": {"v": TEXT}}})
    obj, unknown = pruned(schema, {"known": "x", "odd": {"a": 1}, "items": [{"v": "1"}, {"w": "2"}]}, extra=[1])
    assert obj["spec"] == {"known": "x", "items": [{"v": "1"}, {}]}
    assert "extra" not in obj
    assert unknown == ['unknown field "extra"', 'unknown field "spec.items[1].w"', 'unknown field "spec.odd"']


def test_type_and_metadata_of_the_object_are_always_known() -> None:
    obj, unknown = pruned(spec_schema(), {})
    assert obj["metadata"] == {"name": "a"}
    assert unknown == []


def test_preserved_fields_are_still_pruned_below_declared_properties() -> None:
    tight = {"type": "object", "properties": {"k": TEXT}}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"tight": tight}}
    obj, unknown = pruned(spec_schema(free=free), {"free": {"any": {"thing": [1]}, "tight": {"k": "v", "j": "w"}}})
    assert obj["spec"]["free"] == {"any": {"thing": [1]}, "tight": {"k": "v"}}
    assert unknown == ['unknown field "spec.free.tight.j"']


def test_everything_below_additional_properties_without_a_schema_is_dropped() -> None:
    obj, unknown = pruned(spec_schema(m={"type": "object", "additionalProperties": True}), {"m": {"a": {"b": 1}}})
    assert obj["spec"]["m"] == {"a": {}}
    assert unknown == ['unknown field "spec.m.a.b"']


def test_nulls_in_non_nullable_fields_are_dropped() -> None:
    schema = spec_schema(plain=TEXT, nullable={**TEXT, "nullable": True}, filled={**TEXT, "default": "d"})
    obj, _ = pruned(schema, {"plain": None, "nullable": None, "filled": None})
    assert obj["spec"] == {"nullable": None, "filled": None}


def test_a_definition_that_preserves_unknown_fields_drops_nothing() -> None:
    obj = {"spec": {"odd": None}}
    assert compile_schema(spec_schema(), preserve_unknown_fields=True).prune(obj) == []
    assert obj == {"spec": {"odd": None}}


EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def test_metadata_of_an_embedded_resource_loses_its_unknown_fields() -> None:
    metadata = {"name": "p", "bogus": "x"}
    obj, unknown = pruned(spec_schema(e=EMBEDDED), {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}})
    assert obj["spec"]["e"]["metadata"] == {"name": "p"}
    assert unknown == ['unknown field "spec.e.metadata.bogus"']


def test_malformed_metadata_of_an_embedded_resource_is_refused_on_writing_and_dropped_on_reading() -> None:
    spec = {"e": {"apiVersion": "v1", "kind": 1, "metadata": {"name": "p", "labels": {"a": 1}}}}
    schema = compile_schema(spec_schema(e=EMBEDDED), preserve_unknown_fields=False)
    with pytest.raises(MalformedEmbeddedResource, match="must be a string"):
        schema.prune({"spec": copy.deepcopy(spec)})
    obj = {"spec": spec}
    schema.prune(obj, drop_invalid=True)
    assert obj["spec"]["e"] == {"apiVersion": "v1", "metadata": {"name": "p"}}


NESTED = {
    "type": "object",
    "properties": {"a": TEXT, "b": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(spec=JSON)
def test_pruning_is_idempotent(spec: Any) -> None:
    schema = compile_schema(spec_schema(a=NESTED, b=NESTED), preserve_unknown_fields=False)
    obj = {"spec": spec}
    schema.prune(obj)
    again = copy.deepcopy(obj)
    assert schema.prune(again) == []
    assert again == obj
