"""Which values fit a type, a format and a bound: the edges of each, as kube-openapi draws them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.compiled import compile_schema


def wrong(schema: dict[str, Any], value: Any) -> list[str]:
    whole = {"type": "object", "properties": {"v": schema}}
    return [str(error) for error in compile_schema(whole, preserve_unknown_fields=False).validate({"v": value})]


def of_type(name: str, **more: Any) -> dict[str, Any]:
    return {"type": name, **more}


INT32 = of_type("integer", format="int32")
INT64 = of_type("integer", format="int64")
FLOAT = of_type("number", format="float")
EITHER = {"x-kubernetes-int-or-string": True}
ANY_OBJECT = of_type("object", **{"x-kubernetes-preserve-unknown-fields": True})
OF_EACH_TYPE: dict[str, Any] = {
    "string": "text",
    "integer": 7,
    "number": 7.5,
    "boolean": True,
    "array": [],
    "object": {},
}
FITTING = {(name, name) for name in OF_EACH_TYPE} | {("number", "integer")}


@pytest.mark.parametrize("given", OF_EACH_TYPE)
@pytest.mark.parametrize("wanted", OF_EACH_TYPE)
def test_a_value_of_another_type_is_refused(wanted: str, given: str) -> None:
    schema = {"array": of_type("array", items=of_type("string")), "object": ANY_OBJECT}.get(wanted, of_type(wanted))
    found = wrong(schema, OF_EACH_TYPE[given])
    if (wanted, given) in FITTING:
        assert found == []
    else:
        assert found[0] == f'v: Invalid value: "{given}": v in body must be of type {wanted}: "{given}"'


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INT32, "7", ['v: Invalid value: "string": v in body must be of type integer: "string"']),
        (INT64, "7", ['v: Invalid value: "string": v in body must be of type integer: "string"']),
        (INT32, [7], ['v: Invalid value: "array": v in body must be of type integer: "array"']),
        (FLOAT, "7", ['v: Invalid value: "string": v in body must be of type number: "string"']),
        (
            INT32,
            1.5,
            [
                'v: Invalid value: "float64": v in body must be of type int32: "float64"',
                '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v',
            ],
        ),
        (INT32, True, ['v: Invalid value: "": v in body must be of type int32: ""']),
        (of_type("string", format="date"), ["2024-01-01"], []),  # what upstream lets pass, too
    ],
)
def test_a_format_of_numbers_makes_no_text_a_number(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert wrong(schema, value) == expected


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (INT32, 2**31 - 1, True),
        (INT32, 2**31, False),
        (INT32, -(2**31), True),
        (INT32, -(2**31) - 1, False),
        (INT64, 2**31, True),
        (INT64, 2**63 - 1, True),
        (INT64, 2**63, False),
        (of_type("integer"), -(2**63), True),
        (of_type("integer"), 2**70, False),
        (of_type("number"), 2**70, True),
        (of_type("integer"), 2.0**53 - 1, True),
        (of_type("integer"), 2.0**53, False),
        (of_type("integer"), 7.0, True),
        (of_type("integer"), 7.1, False),
        (of_type("integer"), 0.5, False),
        (FLOAT, 3.4e38, True),
        (FLOAT, 3.5e38, False),
        (of_type("number", format="double"), 3.5e38, True),
        (of_type("integer", format="float"), 7, True),  # no format of integers: not looked at
        (EITHER, 7, True),
        (EITHER, "7", True),
        (EITHER, 7.5, False),
        (EITHER, True, False),
        (EITHER, None, False),
        (EITHER | {"nullable": True}, None, True),
    ],
)
def test_a_number_fits_its_type_and_format_or_is_refused(schema: dict[str, Any], value: Any, fits: bool) -> None:
    assert (wrong(schema, value) == []) is fits


def bounded(**bounds: Any) -> dict[str, Any]:
    return of_type("number", **bounds)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (bounded(maximum=3), 3, True),
        (bounded(maximum=3), 3.5, False),
        (bounded(maximum=3, exclusiveMaximum=True), 3, False),
        (bounded(maximum=3, exclusiveMaximum=True), 2, True),
        (bounded(minimum=3), 3, True),
        (bounded(minimum=3), 2, False),
        (bounded(minimum=3, exclusiveMinimum=True), 3, False),
        (bounded(minimum=3, exclusiveMinimum=True), 4, True),
        (bounded(minimum=0), -1, False),
        (bounded(maximum=0), 1, False),
        (bounded(multipleOf=3), 9, True),
        (bounded(multipleOf=3), 10, False),
        (bounded(multipleOf=3), 9.0, True),
        (bounded(multipleOf=0.25), 0.75, True),
        (bounded(multipleOf=0.25), 0.8, False),
        (bounded(multipleOf=2.5), 5.0, True),
        (of_type("string", minLength=2), "ab", True),
        (of_type("string", minLength=2), "a", False),
        (of_type("string", maxLength=2), "ab", True),
        (of_type("string", maxLength=2), "abc", False),
        (of_type("string", maxLength=0), "a", False),
        (of_type("string", pattern="b+"), "abc", True),
        (of_type("string", pattern="b+"), "ac", False),
        (of_type("string", format="ipv4"), "10.0.0.1", True),
        (of_type("string", format="ipv4"), "10.0.0", False),
        (of_type("string", format="nobody knows"), "x", True),
        (of_type("array", items=of_type("string"), minItems=1), [], False),
        (of_type("array", items=of_type("string"), minItems=1), ["a"], True),
        (of_type("array", items=of_type("string"), maxItems=1), ["a"], True),
        (of_type("array", items=of_type("string"), maxItems=1), ["a", "b"], False),
        (of_type("array", items=of_type("string"), maxItems=0), ["a"], False),
        (of_type("object", additionalProperties=of_type("string"), minProperties=1), {"a": "x"}, True),
        (of_type("object", additionalProperties=of_type("string"), maxProperties=1), {"a": "x"}, True),
        (of_type("object", additionalProperties=of_type("string"), maxProperties=1), {"a": "x", "b": "x"}, False),
    ],
)
def test_bounds_are_inclusive_unless_exclusive(schema: dict[str, Any], value: Any, fits: bool) -> None:
    assert (wrong(schema, value) == []) is fits


@pytest.mark.parametrize(
    ("allowed", "value", "fits"),
    [
        ([1, 2], 1, True),
        ([1, 2], 1.0, True),
        ([0, 1], True, False),
        ([True], True, True),
        ([True], 1, False),
        (["1"], 1, False),
        ([None], None, False),
        ([{"a": 1}], {"a": 1}, True),
        ([{"a": 1}], {"a": 2}, False),
        ([[1]], [1], True),
        ([[1]], [1, 1], False),
    ],
)
def test_value_outside_the_enum_is_rejected(allowed: list[Any], value: Any, fits: bool) -> None:
    schema = {"enum": allowed, "x-kubernetes-preserve-unknown-fields": True, "nullable": True}
    assert (wrong(schema, value) == []) is fits


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"oneOf": [{"minimum": 1}, {"minimum": 5}]}, 7, "Found 2 valid alternatives"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 5}]}, 3, ""),
        ({"oneOf": [{"minimum": 1}, {"minimum": 5}]}, 0, "Found none valid"),
        ({"anyOf": [{"minimum": 1}, {"minimum": 5}]}, 3, ""),
        ({"allOf": [{"minimum": 1}, {"minimum": 5}]}, 3, "must validate all the schemas (allOf)"),
        ({"allOf": [{"minimum": 1}, {"minimum": 5}]}, 0, "must validate all the schemas (allOf). None validated"),
        ({"allOf": [{"minimum": 1}, {"minimum": 5}]}, 5, ""),
        ({"not": {"minimum": 5}}, 3, ""),
    ],
)
def test_alternatives_are_counted(schema: dict[str, Any], value: int, words: str) -> None:
    found = wrong(of_type("integer", **schema), value)
    assert any(error.endswith(words) for error in found) if words else found == []
