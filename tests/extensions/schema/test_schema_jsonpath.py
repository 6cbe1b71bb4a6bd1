"""JSONPath, as printer columns and selectable fields have it."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.jsonpath import InvalidJsonPath, compile_path, validate_simple_path
from pilothouse.extensions.schema.structural import structural
from pilothouse.machinery.field import root

OBJECT = {
    "spec": {
        "a": {"b-c": 1},
        "l": [1, 2, 3],
        "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "No", "n": 90}],
    },
    "metadata": {"annotations": {"a.b/c": "z"}},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.a.b-c", [1]),
        (".spec.l[0]", [1]),
        (".spec.l[-1]", [3]),
        (".spec.l[9]", []),
        (".spec.l[*]", [1, 2, 3]),
        (".spec.l[0:2]", [1, 2]),
        (".spec.l[0,2]", [1, 3]),
        (".spec.l[::2]", [1, 3]),
        (".spec.a[*]", []),
        ('.spec.conditions[?(@.type=="Ready")].status', ["True"]),
        (".spec.conditions[?(@.n > 50)].type", ["Other"]),
        (".spec.conditions[?(@.missing)].type", []),
        (r".metadata.annotations.a\.b/c", ["z"]),
        (".metadata.annotations['a.b/c']", ["z"]),
        ("..status", ["True", "No"]),
        (".spec.none.deeper", []),
        (".spec.a.*", [1]),
    ],
)
def test_path_finds_the_named_values(path: str, expected: list[Any]) -> None:
    assert compile_path(path).find(OBJECT) == expected


@pytest.mark.parametrize("path", [".spec[", ".spec[x]", ".a{b}", ".l[::0]"])
def test_invalid_path_does_not_compile(path: str) -> None:
    with pytest.raises(InvalidJsonPath):
        compile_path(path)


def test_definitions_ask_for_a_leading_dot() -> None:
    assert [e.detail for e in validate_simple_path("", root("p"))] == ["must not be empty"]
    assert [e.detail for e in validate_simple_path("spec", root("p"))] == ["must be a simple json path starting with ."]
    assert list(validate_simple_path(".spec", root("p"))) == []


SCHEMA = structural(
    {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a.b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
)


def test_a_field_path_leads_to_the_schema_of_its_field() -> None:
    found = find_field(".spec['a.b']", SCHEMA)
    assert (found.path.text, found.schema.type if found.schema else None) == ("spec.a.b", "string")
    assert find_field(".m.key", SCHEMA).path.text == "m[key]"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".nope", "does not refer to a valid field"),
        ("spec", "expected [ or . but got: spec"),
        (".spec[x]", "expected single quoted string but got x"),
        (".", "unexpected end of JSON path"),
        (".spec['a.b'", "unexpected end of JSON path"),
    ],
)
def test_a_wrong_field_path_is_refused_with_the_reason(path: str, why: str) -> None:
    with pytest.raises(InvalidFieldPath) as refused:
        find_field(path, SCHEMA)
    assert str(refused.value) == why


def test_selectable_fields_have_no_brackets() -> None:
    with pytest.raises(InvalidFieldPath, match="array notation is not allowed"):
        find_field(".spec['a.b']", SCHEMA, brackets=False)
