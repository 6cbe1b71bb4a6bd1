"""Schemas that are made from Python annotations."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, Optional

import pytest
from schemas_of_specs import definition_errors

from pilothouse.builder.types.markers import (
    Atomic,
    Default,
    Description,
    EmbeddedResource,
    Format,
    ListSet,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    MinProperties,
    MultipleOf,
    Nullable,
    Pattern,
    Rule,
)
from pilothouse.builder.types.wire import schema_of

TEXT = {"type": "string"}
INTEGER = {"type": "integer", "format": "int64"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


Port = NewType("Port", int)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, TEXT),
        (int, INTEGER),
        (float, {"type": "number", "format": "double"}),
        (bool, {"type": "boolean"}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.date, {"type": "string", "format": "date"}),
        (bytes, {"type": "string", "format": "byte"}),
        (list[str], {"type": "array", "items": TEXT}),
        (list, {"type": "array", "items": PRESERVE}),
        (list[list[int]], {"type": "array", "items": {"type": "array", "items": INTEGER}}),
        (list[str | None], {"type": "array", "items": {**TEXT, "nullable": True}}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (dict[str, Any], {"type": "object", **PRESERVE}),
        (dict, {"type": "object", **PRESERVE}),
        (Any, PRESERVE),
        (object, PRESERVE),
        (int | str, {"x-kubernetes-int-or-string": True}),
        (Optional[int | str], {"x-kubernetes-int-or-string": True}),  # noqa: UP045
        (int | float, {"type": "number", "format": "double"}),
        (str | None, TEXT),
        (Port, INTEGER),
        (Literal["a", "b", ""], {**TEXT, "enum": ["a", "b", ""]}),
        (Literal["a", None], {**TEXT, "enum": ["a"]}),
        (Literal[1, 2], {**INTEGER, "enum": [1, 2]}),
        (Color, {**TEXT, "enum": ["red", "blue"]}),
        (Level, {**INTEGER, "enum": [1, 2]}),
    ],
    ids=str,
)
def test_an_annotation_has_a_structural_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert schema_of(annotation) == schema
    assert definition_errors(schema_of(annotation)) == []


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, Minimum(1), Maximum(9)], {**INTEGER, "minimum": 1, "maximum": 9}),
        (
            Annotated[int, Minimum(1, exclusive=True), Maximum(9, exclusive=True)],
            {**INTEGER, "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
        ),
        (Annotated[int, MultipleOf(2)], {**INTEGER, "multipleOf": 2}),
        (Annotated[int, Format("int32")], {"type": "integer", "format": "int32"}),
        (Annotated[str, MinLength(1), MaxLength(9)], {**TEXT, "minLength": 1, "maxLength": 9}),
        (Annotated[str, Pattern("^a")], {**TEXT, "pattern": "^a"}),
        (
            Annotated[list[str], MinItems(1), MaxItems(2), ListSet()],
            {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2, "x-kubernetes-list-type": "set"},
        ),
        (Annotated[list[str], Atomic()], {"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"}),
        (
            Annotated[dict[str, str], Atomic(), MinProperties(1), MaxProperties(2)],
            {
                "type": "object",
                "additionalProperties": TEXT,
                "x-kubernetes-map-type": "atomic",
                "minProperties": 1,
                "maxProperties": 2,
            },
        ),
        (Annotated[int | None, Nullable()], {**INTEGER, "nullable": True}),
        (Annotated[int, Minimum(1)] | None, {**INTEGER, "minimum": 1}),
        (
            Annotated[dict[str, Any], EmbeddedResource()],
            {"type": "object", **PRESERVE, "x-kubernetes-embedded-resource": True},
        ),
        (Annotated[int, Description("How many.")], {**INTEGER, "description": "How many."}),
        (Annotated[int, Default(0)], {**INTEGER, "default": 0}),
        (
            Annotated[int, Rule("self > 0", message="must be positive"), Rule("self < 9")],
            {
                **INTEGER,
                "x-kubernetes-validations": [{"rule": "self > 0", "message": "must be positive"}, {"rule": "self < 9"}],
            },
        ),
        (Annotated[str, "a note of somebody else"], TEXT),
    ],
    ids=str,
)
def test_a_marker_adds_to_the_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert schema_of(annotation) == schema
    assert definition_errors(schema_of(annotation)) == []


def test_a_plain_dict_is_a_schema_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}}
    assert schema_of(schema) is schema


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (set[str], r"set\[str\] has no schema"),
        (complex, "complex has no schema"),
        (dict[int, str], "cannot be a key"),
        (str | bool, "a value is of one type"),
        (Literal["a", 1], "are not all strings"),
        (Mixed, "are not all strings"),
        (Annotated[int, MinLength(1)], r"MinLength\(value=1\) is for string, not for integer"),
    ],
    ids=str,
)
def test_what_has_no_schema_is_refused_with_class_and_field(annotation: Any, why: str) -> None:
    Holder = type("Holder", (), {"__annotations__": {"value": annotation}, "__module__": __name__})
    with pytest.raises(TypeError, match=f"Holder.value: .*{why}"):
        schema_of(dataclass(Holder))
