"""Models of pydantic in the place of dataclasses."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from schemas_of_specs import definition_errors

from pilothouse.builder.types.wire import from_wire, schema_of, to_wire

INTEGER = {"type": "integer", "format": "int64"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """One part."""

    size: int = Field(1, gt=0, le=9)


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    long_name: str = Field(min_length=1, description="Its name.")
    either: int | str = 0
    number: int | float = 0
    nothing: str | None
    note: str | None = None
    color: Color = Color.BLUE
    only: Literal["x"] = "x"
    when: datetime | None = None
    anything: Any = None
    options: dict[str, Any] = {}
    gaps: list[int | None] = []
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    names: set[str] = set()
    part: Part | None = Field(default=None, description="The main one.")
    third: Part = Part(size=3)


PART = {
    "type": "object",
    "description": "One part.",
    "properties": {"size": {**INTEGER, "default": 1, "minimum": 0, "exclusiveMinimum": True, "maximum": 9}},
}


def test_a_model_has_a_structural_schema() -> None:
    schema = schema_of(Model)
    assert schema == {
        "type": "object",
        "required": ["longName"],
        "properties": {
            "longName": {"type": "string", "minLength": 1, "description": "Its name."},
            "either": {"x-kubernetes-int-or-string": True},
            "number": {"type": "number", "format": "double"},
            "nothing": {"type": "string"},
            "note": {"type": "string"},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            "only": {"type": "string", "enum": ["x"], "default": "x"},
            "when": {"type": "string", "format": "date-time"},
            "anything": PRESERVE,
            "options": {"type": "object", **PRESERVE},
            "gaps": {"type": "array", "items": {**INTEGER, "nullable": True}},
            "parts": {"type": "array", "items": PART},
            "byName": {"type": "object", "additionalProperties": PART},
            "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "part": {**PART, "description": "The main one."},
            "third": {**PART, "default": {"size": 3}},
        },
    }
    assert definition_errors(schema) == []


def test_a_model_is_written_and_read_by_its_aliases() -> None:
    model = Model(long_name="a", nothing=None, when=datetime(2024, 2, 1, tzinfo=UTC), parts=[Part(size=2)])
    written = to_wire(model)
    assert written["longName"] == "a"
    assert written["when"] == "2024-02-01T00:00:00Z"
    assert written["parts"] == [{"size": 2}]
    assert "note" not in written
    assert from_wire(Model, written) == model


def test_a_model_that_is_not_valid_is_read_all_the_same() -> None:
    read = from_wire(Model, {"parts": [{"size": 100}], "color": "red", "unknown": 1})
    assert isinstance(read, Model)
    assert (read.long_name, read.nothing, read.color, read.either) == ("", None, Color.RED, 0)
    assert [part.size for part in read.parts] == [100]


def test_a_dataclass_may_have_models_as_fields() -> None:
    @dataclass
    class Spec:
        part: Part
        parts: list[Part] = field(default_factory=list)

    assert schema_of(Spec)["properties"] == {"part": PART, "parts": {"type": "array", "items": PART}}
    spec = Spec(Part(size=2), [Part(size=3)])
    assert from_wire(Spec, to_wire(spec)) == spec


class Tree(BaseModel):
    children: list[Tree] = []


class Branches(BaseModel):
    tree: Tree


class Pair(BaseModel):
    pair: tuple[int, str]


class Mixed(BaseModel):
    either: Literal[1, "a"]


class OneOfTwo(BaseModel):
    either: Part | Color


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Tree, r"^Tree\.children\[\]: Tree contains itself"),
        (Branches, r"^Branches\.tree\.children\[\]: Tree contains itself"),
        (Pair, r"^Pair\.pair: a tuple has no schema"),
        (Mixed, r"^Mixed\.either: its schema has no type"),
        (OneOfTwo, r"^OneOfTwo\.either: a value is of one type"),
    ],
)
def test_a_model_without_a_structural_schema_is_refused_with_its_field(model: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        schema_of(model)
