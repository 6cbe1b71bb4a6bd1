"""Values that are not what their schema says are refused in the words of kube-openapi."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.compiled import OtherErrors, compile_schema
from pilothouse.machinery.field import Path, root, too_long


def errors(schema: dict[str, Any], value: Any) -> list[str]:
    whole = {"type": "object", "properties": {"v": schema}}
    return [str(error) for error in compile_schema(whole, preserve_unknown_fields=False).validate({"v": value})]


INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
TEXT = {"type": "string"}

CASES = [
    (TEXT, 5, ['v: Invalid value: "integer": v in body must be of type string: "integer"']),
    (TEXT, None, ['v: Invalid value: "null": v in body must be of type string: "null"']),
    ({**TEXT, "nullable": True}, None, []),
    (INTEGER, 3.0, []),
    (NUMBER, 3, []),
    ({**INTEGER, "maximum": 2}, 3, ["v: Invalid value: 3: v in body should be less than or equal to 2"]),
    (
        {**INTEGER, "maximum": 2.5},
        1,
        ['<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in v'],
    ),
    ({**NUMBER, "minimum": 1, "exclusiveMinimum": True}, 1.0, [
        "v: Invalid value: 1: v in body should be greater than 1"
    ]),
    ({**NUMBER, "multipleOf": 0.1}, 0.3, []),
    ({**NUMBER, "multipleOf": 0.5}, 0.7, ["v: Invalid value: 0.7: v in body should be a multiple of 0.5"]),
    ({**TEXT, "maxLength": 2}, "äöü", ["v: Too long: may not be more than 2 bytes"]),
    ({**TEXT, "pattern": "^a$"}, "a\n", ["v: Invalid value: \"a\\n\": v in body should match '^a$'"]),
    ({**TEXT, "format": "date-time"}, 5, ['v: Invalid value: "int64": v in body must be of type date-time: "int64"']),
    ({**TEXT, "enum": ["a", "b"]}, "c", ['v: Unsupported value: "c": supported values: "a", "b"']),
    ({**INTEGER, "enum": [1, 2]}, 3, ['v: Unsupported value: 3: supported values: "1", "2"']),
    ({**INTEGER, "allOf": [{"minimum": 2}, {"maximum": 4}]}, 5, [
        "v: Invalid value: 5: v in body should be less than or equal to 4",
        '<nil>: Invalid value: "": "v" must validate all the schemas (allOf)',
    ]),
    ({**INTEGER, "anyOf": [{"minimum": 8}, {"maximum": 4}]}, 5, [
        '<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)',
        "v: Invalid value: 5: v in body should be greater than or equal to 8",
    ]),
    ({**TEXT, "not": {"enum": ["x"]}}, "x", ['<nil>: Invalid value: "": "v" must not validate the schema (not)']),
    ({"type": "object", "minProperties": 1, "additionalProperties": TEXT}, {}, [
        "v: Invalid value: 0: v in body should have at least 1 properties"
    ]),
    ({"type": "object", "additionalProperties": INTEGER}, {"k": "x"}, [
        'v.k: Invalid value: "string": v.k in body must be of type integer: "string"'
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_a_value_is_refused_in_the_words_of_kube_openapi(
    schema: dict[str, Any], value: Any, expected: list[str]
) -> None:
    assert errors(schema, value) == expected


def test_best_matching_alternative_reports_its_problems() -> None:
    schema = {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "oneOf": [{"required": ["a", "c"]}, {"required": ["b"], "properties": {"a": {"pattern": "^x"}}}],
    }
    assert errors(schema, {"a": "xy"}) == [
        '<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found none valid',
        "v.b: Required value",
    ]


def test_errors_are_placed_below_the_given_path() -> None:
    schema = compile_schema({"type": "object", "required": ["a"]}, preserve_unknown_fields=False)
    assert [error.field for error in schema.validate({}, path=root("here"))] == ["here.a"]


def test_items_of_sets_and_keys_of_maps_must_differ() -> None:
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    assert errors(tags, ["a", "b", "a", "a"]) == ['v[2]: Duplicate value: "a"']
    item = {"type": "object", "properties": {"n": INTEGER, "p": TEXT}}
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p", "n"], "items": item}
    assert errors(ports, [{"n": 1, "p": "x"}, {"p": "x", "n": 1}]) == ['v[1]: Duplicate value: {"n":1,"p":"x"}']


def test_an_embedded_resource_needs_a_type_and_valid_metadata() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert errors(embedded, {"kind": "Not a kind", "metadata": {"name": "a/b"}}) == [
        "v.apiVersion: Required value",
        'v.kind: Invalid value: "Not a kind": may have mixed case, but should otherwise match: a DNS-1035 label must '
        "consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
        "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
        "'[a-z]([-a-z0-9]*[a-z0-9])?')",
        "v.metadata.name: Invalid value: \"a/b\": may not contain '/'",
    ]


def test_errors_of_other_validators_suppress_rules() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "false"}]}
    compiled = compile_schema(schema, preserve_unknown_fields=False)
    known = OtherErrors(before=(too_long(Path("metadata.name"), 3),))
    found = [str(error) for error in compiled.validate({}, seen=known)]
    assert found == [
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    ]
