"""Schemas of CustomResourceDefinitions that are refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.machinery.field import root

PATH = root("schema")


def errors(schema: dict[str, Any], **context: Any) -> list[str]:
    found = validate_crd_schema(schema, path=PATH, version_context=VersionContext(**context))
    return [str(error) for error in found]


def of_field(schema: dict[str, Any], **context: Any) -> list[str]:
    """Errors of the field `v`, without their place."""
    found = errors({"type": "object", "properties": {"v": schema}}, **context)
    return [error.removeprefix("schema.properties[v]") for error in found]


TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
LIST_KEYS = "x-kubernetes-list-map-keys"


def test_a_structural_schema_is_taken() -> None:
    item = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "n": {**INTEGER, "default": 3}}}
    ports = {"type": "array", "x-kubernetes-list-type": "map", LIST_KEYS: ["k", "n"], "items": item}
    either = {"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, TEXT]}
    assert errors({"type": "object", "properties": {"ports": ports, "either": either}}) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"description": "no type"}, [".type: Required value: must not be empty for specified object fields"]),
        ({"type": "array"}, [".items: Required value: must be specified"]),
        ({"type": "array", "items": {}}, [".items.type: Required value: must not be empty for specified array items"]),
        ({**TEXT, "pattern": "(?=a)"}, [
            '.pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn\'t: error parsing regexp: '
            "invalid or unsupported Perl syntax: `(?=`"
        ]),
        ({**TEXT, "allOf": [{"description": "x", "default": "y"}]}, [
            ".allOf[0].default: Forbidden: must be undefined to be structural",
            ".allOf[0].description: Forbidden: must be empty to be structural",
        ]),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, [
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        ]),
        ({"type": "strange"}, [
            '.type: Unsupported value: "strange": supported values: "array", "boolean", "integer", "number", '
            '"object", "string"'
        ]),
        ({"$ref": "#/x"}, [".$ref: Forbidden: $ref is not supported"]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, [
            ".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"
        ]),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "odd"}, [
            '.x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map"'
        ]),
        ({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}, [
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
            "x-kubernetes-list-type=set"
        ]),
        ({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}, [
            ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
        ]),
        ({**INTEGER, "default": "three"}, [
            '.default: Invalid value: "string":  in body must be of type integer: "string"'
        ]),
        ({"type": "object", "properties": {"a": TEXT}, "default": {"b": 1}}, [
            '.default: Invalid value: {"b":1}: must not have unknown fields'
        ]),
    ],
)  # fmt: skip
def test_a_schema_is_refused_in_the_words_of_upstream(schema: dict[str, Any], expected: list[str]) -> None:
    assert of_field(schema) == expected


def test_fields_in_alternatives_must_be_declared_outside_of_them() -> None:
    assert errors({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}) == [
        "schema.properties[a]: Required value: because it is defined in schema.anyOf[0].properties[a]"
    ]


def test_defaults_must_hold_the_rules_of_their_schema() -> None:
    schema = {**INTEGER, "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]}
    assert of_field(schema) == [".default: Invalid value: 1: failed rule: self > 1"]


def test_defaults_are_refused_where_they_cannot_be() -> None:
    assert of_field({**TEXT, "default": "x"}, defaults_forbidden="because of it") == [
        ".default: Forbidden: must not be set because of it"
    ]


def test_metadata_may_say_only_names() -> None:
    names = {"type": "object", "properties": {"name": {**TEXT, "maxLength": 5}}}
    assert errors({"type": "object", "properties": {"metadata": names}}) == []
    labels = {"type": "object", "properties": {"labels": {"type": "object"}}}
    assert errors({"type": "object", "properties": {"metadata": labels}}) == [
        "schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
        "but metadata is implicitly specified"
    ]


def test_with_a_status_subresource_the_root_may_say_less() -> None:
    assert errors({"type": "object", "maxLength": 3}, has_status=True) == []
    found = errors({"type": "object", "maxProperties": 3}, has_status=True)
    assert found[0].startswith('schema: Invalid value: {"ID":"","Schema":"","Ref":null,')
    assert "only [Description Type Format " in found[0]


def rule_errors(schema: dict[str, Any], rule: dict[str, Any]) -> list[str]:
    found = of_field({**schema, "x-kubernetes-validations": [rule]})
    return [error.removeprefix(".x-kubernetes-validations[0]") for error in found]


def printed(rule: str, **more: str) -> str:
    expression = more.get("messageExpression", "")
    return (
        f'{{"Rule":"{rule}","Message":"","MessageExpression":"{expression}","Reason":null,"FieldPath":"",'
        '"OptionalOldSelf":null}'
    )


def test_rules_must_compile_against_their_schema() -> None:
    obj = {"type": "object", "properties": {"a": INTEGER}}
    assert rule_errors(obj, {"rule": "self.b == 1"}) == [
        f".rule: Invalid value: {printed('self.b == 1')}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n"
        " | self.b == 1\n | ....^"
    ]
    pattern = "'a'.matches('(')"
    assert rule_errors(obj, {"rule": pattern}) == [
        f".rule: Invalid value: {printed(pattern)}: compilation failed: ERROR: <input>:1:13: "
        "invalid matches argument\n | 'a'.matches('(')\n | ............^"
    ]
    assert rule_errors(obj, {"rule": "self.a"}) == [
        f".rule: Invalid value: {printed('self.a')}: cel expression must evaluate to a bool"
    ]
    message = {"rule": "self.a == 1", "messageExpression": "self.a"}
    assert rule_errors(obj, message) == [
        f".messageExpression: Invalid value: {printed('self.a == 1', messageExpression='self.a')}: "
        "messageExpression must evaluate to a string"
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": " "}, ".rule: Required value: rule is not specified"),
        ({"rule": "true", "message": "a\nb"}, '.message: Invalid value: "a\\nb": must not contain line breaks'),
        ({"rule": "true\n&& true"}, ".message: Required value: message must be specified if rule contains line breaks"),
        ({"rule": "true", "fieldPath": ".no"}, '.fieldPath: Invalid value: ".no": must be a valid path'),
        ({"rule": "true", "optionalOldSelf": True},
         ".optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"),
    ],
)  # fmt: skip
def test_rule_declarations_are_validated(rule: dict[str, Any], expected: str) -> None:
    assert rule_errors({"type": "object", "properties": {"a": TEXT}}, rule) == [expected]


@pytest.mark.parametrize(
    "unsupported", [{"id": "x"}, {"items": [TEXT]}, {"x-kubernetes-preserve-unknown-fields": False}]
)
def test_field_path_is_not_resolved_in_a_schema_that_is_not_structural(unsupported: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {**TEXT, **unsupported}}}
    assert not any("valid path" in error for error in rule_errors(schema, {"rule": "true", "fieldPath": ".no"}))


def test_rules_that_cost_too_much_are_refused_unless_they_are_stored_already() -> None:
    listed = {"type": "object", "properties": {"l": {"type": "array", "items": {**TEXT, "maxLength": 100}}}}
    rule = {"rule": "self.l.all(x, x.contains('a') && self.l.size() > 1)"}
    schema = {**listed, "x-kubernetes-validations": [rule]}
    assert len(of_field(schema)) == 1
    assert "estimated rule cost exceeds budget by factor of" in of_field(schema)[0]
    assert of_field(schema, limits_each_rule=False) == []


def test_old_values_cannot_be_asked_for_below_an_atomic_list() -> None:
    item = {**TEXT, "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    assert of_field({"type": "array", "maxItems": 3, "items": item}) == [
        '.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the '
        "uncorrelatable portion of the schema within schema.properties[v]"
    ]
