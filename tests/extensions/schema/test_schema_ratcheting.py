"""What was wrong before and did not change is let pass; what changed is not."""

from __future__ import annotations

from typing import Any

from pilothouse.extensions.schema.compiled import compile_schema

SHORT = {"type": "string", "maxLength": 2}


def update_errors(properties: dict[str, Any], old: Any, new: Any) -> list[str]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    return [error.field for error in compiled.validate_update({"spec": new}, {"spec": old})]


def test_a_field_that_was_wrong_may_stay_while_another_changes() -> None:
    assert update_errors({"a": SHORT, "b": SHORT}, {"a": "long", "b": "x"}, {"a": "long", "b": "y"}) == []


def test_a_field_that_was_wrong_may_not_become_wrong_in_another_way() -> None:
    assert update_errors({"a": SHORT}, {"a": "long"}, {"a": "longer"}) == ["spec.a"]


def test_a_value_that_becomes_one_of_another_type_is_checked_anew() -> None:
    box = {"type": "object", "properties": {"a": SHORT}}
    assert update_errors({"b": box}, {"b": 7}, {"b": {"a": "long"}}) == ["spec.b.a"]
    assert update_errors({"b": box}, {"b": {"a": "long"}}, {"b": "text"}) == ["spec.b"]
    assert update_errors({"b": box}, {"b": "text"}, {"b": "text"}) == []
    listed = {"type": "array", "items": SHORT}
    assert update_errors({"b": listed}, {"b": "text"}, {"b": ["long"]}) == ["spec.b[0]"]
    assert update_errors({"b": listed}, {"b": ["long"]}, {"b": "text"}) == ["spec.b"]


def test_a_field_that_was_not_there_before_is_checked() -> None:
    assert update_errors({"a": SHORT, "b": SHORT}, {"b": "x"}, {"a": "long", "b": "x"}) == ["spec.a"]


def test_an_object_with_one_part_less_has_changed() -> None:
    small = {"type": "object", "minProperties": 3, "additionalProperties": {"type": "string"}}
    assert update_errors({"m": small}, {"m": {"a": "1", "b": "2"}}, {"m": {"a": "1", "b": "2"}}) == []
    assert update_errors({"m": small}, {"m": {"a": "1", "b": "2"}}, {"m": {"a": "1"}}) == ["spec.m"]
    assert update_errors({"m": small}, {"m": {"a": "1"}}, {"m": {"a": "1", "b": "2"}}) == ["spec.m"]


def test_reordered_items_count_as_a_change_only_in_ordered_lists() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    for extra, refused in ((keyed, []), ({}, ["spec.l"])):
        many = {"type": "array", "minItems": 3, "items": item, **extra}
        assert update_errors({"l": many}, {"l": [{"k": "a"}, {"k": "b"}]}, {"l": [{"k": "b"}, {"k": "a"}]}) == refused
    many = {"type": "array", "minItems": 3, "items": item, **keyed}
    assert update_errors({"l": many}, {"l": [{"k": "a"}, {"k": "b"}]}, {"l": [{"k": "a"}]}) == ["spec.l"]
    assert update_errors({"l": many}, {"l": [{"k": "a"}]}, {"l": [{"k": "b"}]}) == ["spec.l"]


def test_a_number_that_is_written_in_another_way_has_changed() -> None:
    wrong = {"enum": [7], "x-kubernetes-preserve-unknown-fields": True}
    assert update_errors({"a": wrong}, {"a": 1}, {"a": 1}) == []
    assert update_errors({"a": wrong}, {"a": 1}, {"a": True}) == ["spec.a"]


def test_items_are_found_again_by_their_keys() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": SHORT}}
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    old = {"l": [{"k": "a", "v": "long"}, {"k": "b", "v": "long"}]}
    new = {"l": [{"k": "b", "v": "long"}, {"k": "c", "v": "long"}]}
    assert update_errors({"l": ports}, old, new) == ["spec.l[1].v"]


def test_items_of_an_atomic_list_are_refused_again_when_the_list_changes() -> None:
    plain = {"type": "array", "items": SHORT}
    assert update_errors({"l": plain}, {"l": ["long"]}, {"l": ["long", "x"]}) == ["spec.l[0]"]
    assert update_errors({"l": plain}, {"l": ["long"]}, {"l": ["long"]}) == []


def test_duplicates_that_were_there_before_may_stay() -> None:
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    assert update_errors({"l": tags}, {"l": ["a", "a"]}, {"l": ["a", "a", "b"]}) == []
    assert update_errors({"l": tags}, {"l": ["a"]}, {"l": ["a", "a"]}) == ["spec.l[1]"]


def test_a_status_update_checks_the_status_alone_but_all_rules() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a": SHORT}},
            "status": {"type": "object", "properties": {"b": SHORT}},
        },
        "x-kubernetes-validations": [{"rule": "self.spec.a != 'bad'"}],
    }
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    wrong = [str(e) for e in compiled.validate_status_update({"spec": {"a": "long"}, "status": {"b": 1}}, {})]
    assert wrong[0] == 'status.b: Invalid value: "integer": b in body must be of type string: "integer"'
    ruled = [str(e) for e in compiled.validate_status_update({"spec": {"a": "bad"}, "status": {}}, {})]
    assert ruled == ["<nil>: Invalid value: failed rule: self.spec.a != 'bad'"]
