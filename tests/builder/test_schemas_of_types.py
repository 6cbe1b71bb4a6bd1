"""Schemas that are made from Python annotations."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NewType, NotRequired, Optional, TypedDict

import pytest

from pilothouse.builder.types.markers import (
    Atomic,
    Default,
    Description,
    EmbeddedResource,
    Format,
    ListMap,
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
    Name,
    Nullable,
    Pattern,
    PreserveUnknown,
    Rule,
)
from pilothouse.builder.types.schema import schema_of
from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.machinery.field import root

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


def definition_errors(schema: dict[str, Any]) -> list[str]:
    """What a CustomResourceDefinition with this schema of its spec is refused for."""
    whole = {"type": "object", "properties": {"spec": schema}}
    return [str(each) for each in validate_crd_schema(whole, path=root("schema"), version_context=VersionContext())]


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


def test_a_schema_may_be_changed_without_changing_the_next() -> None:
    @dataclass
    class Spec:
        names: list[str]

    schema_of(Spec)["properties"]["names"]["items"]["type"] = "integer"
    assert schema_of(Spec)["properties"]["names"]["items"] == TEXT


@dataclass
class Item:
    """One of several."""

    name: str
    cluster_ip: Annotated[str, Name("clusterIP")] = ""
    port: int = 80
    """Where it listens."""


@dataclass
class Limits:
    low: int = 0
    high: int = 0
    rules: ClassVar[list[Rule]] = [Rule("self.low <= self.high", message="low is above high")]


@dataclass
class Spec:
    reference_type: Literal["Flunder", "Fischer", ""] = ""
    from_: str = ""
    first: str | None = None
    enabled: bool = True
    color: Color = Color.BLUE
    tags: list[str] = field(default_factory=lambda: ["a"])
    labels: dict[str, str] = field(default_factory=dict)
    items: Annotated[list[Item], ListMap("name")] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)
    main: Annotated[Item | None, PreserveUnknown()] = None
    last: str | None = field(default=None, kw_only=True)
    maybe: Annotated[int | None, Nullable()] = field(kw_only=True)
    always: int = field(kw_only=True)
    absent: int | None = field(kw_only=True)


def test_a_dataclass_is_an_object_with_names_in_camel_case() -> None:
    schema = schema_of(Spec)
    assert definition_errors(schema) == []
    assert {"referenceType", "from"} < schema["properties"].keys()
    assert "clusterIP" in schema["properties"]["items"]["items"]["properties"]


def test_only_fields_that_have_no_default_and_cannot_be_none_are_required() -> None:
    assert schema_of(Spec)["required"] == ["maybe", "always"]


def test_a_zero_default_is_no_default_of_the_schema_and_any_other_is() -> None:
    properties = schema_of(Spec)["properties"]
    assert {name: each["default"] for name, each in properties.items() if "default" in each} == {
        "enabled": True,
        "color": "blue",
        "tags": ["a"],
    }


def test_docstrings_of_classes_and_fields_are_descriptions() -> None:
    schema = schema_of(Item)
    assert schema["description"] == "One of several."
    assert schema["properties"]["port"] == {**INTEGER, "description": "Where it listens.", "default": 80}
    assert "description" not in schema_of(Limits), "the signature that dataclass writes is no description"


def test_a_class_has_rules_in_its_attribute() -> None:
    rule = {"rule": "self.low <= self.high", "message": "low is above high"}
    assert schema_of(Limits)["x-kubernetes-validations"] == [rule]


def test_a_field_called_rules_is_a_field() -> None:
    @dataclass
    class Role:
        rules: list[str] = field(default_factory=list)

    assert schema_of(Role)["properties"] == {"rules": {"type": "array", "items": TEXT}}


def test_a_nested_object_with_defaults_of_its_own_is_there_by_default() -> None:
    @dataclass
    class Inner:
        replicas: int = 1

    @dataclass
    class Outer:
        inner: Inner = field(default_factory=Inner)
        other: Inner = field(default_factory=lambda: Inner(3))
        none: Inner | None = None

    properties = schema_of(Outer, names=locals())["properties"]
    assert [each.get("default") for each in properties.values()] == [{}, {"replicas": 3}, None]
    assert definition_errors(schema_of(Outer)) == []


def test_a_typed_dict_has_its_keys_as_they_are() -> None:
    class Options(TypedDict):
        """Some options."""

        max_age: int
        last: int | None
        note: NotRequired[str]

    assert schema_of(Options) == {
        "type": "object",
        "description": "Some options.",
        "required": ["last", "max_age"],
        "properties": {"max_age": INTEGER, "last": {**INTEGER, "nullable": True}, "note": TEXT},
    }


class Outside:
    @dataclass
    class Spec:
        part: Part  # noqa: F821

        @dataclass
        class Own:
            a: int = 0

        own: Own | None = None

    @dataclass
    class Part:
        size: int = 0

    def list(self) -> None:
        """A method whose name is that of a type."""


def test_annotations_are_resolved_in_the_enclosing_class() -> None:
    properties = schema_of(Outside.Spec)["properties"]
    assert properties["part"]["properties"] == {"size": INTEGER}
    assert properties["own"]["properties"] == {"a": INTEGER}


def test_annotations_are_resolved_by_names_that_are_given() -> None:
    class Flunder:
        @dataclass
        class Spec:
            parts: list[Part]  # noqa: F821

        @dataclass
        class Part:
            size: int = 0

        def list(self) -> None: ...

    schema = schema_of(Flunder.Spec, names=vars(Flunder))
    assert schema["properties"]["parts"]["items"]["properties"] == {"size": INTEGER}


@dataclass
class Dated:
    date: dt.date = dt.date(2024, 2, 1)
    int: int = 3


def test_a_field_may_be_named_as_a_type() -> None:
    assert schema_of(Dated)["properties"]["int"] == {**INTEGER, "default": 3}
    assert schema_of(Dated)["properties"]["date"]["default"] == "2024-02-01"


@dataclass
class Node:
    name: str = ""
    children: list[Node] = field(default_factory=list)


def test_a_class_that_contains_itself_is_refused_with_the_path() -> None:
    with pytest.raises(TypeError, match=r"^Node\.children\[\]: Node contains itself"):
        schema_of(Node)


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (set[str], r"set\[str\] has no schema"),
        (complex, "complex has no schema"),
        (dict[int, str], "is no key"),
        (str | bool, "a value is of one type"),
        (Literal["a", 1], "are not all texts"),
        (Mixed, "are not all texts"),
        (Annotated[int, MinLength(1)], r"MinLength\(value=1\) is for string, not for integer"),
    ],
    ids=str,
)
def test_what_has_no_schema_is_refused_with_class_and_field(annotation: Any, why: str) -> None:
    Holder = type("Holder", (), {"__annotations__": {"value": annotation}, "__module__": __name__})
    with pytest.raises(TypeError, match=f"Holder.value: .*{why}"):
        schema_of(dataclass(Holder))


def test_a_name_that_nobody_knows_is_refused_with_class_and_field() -> None:
    @dataclass
    class Lost:
        thing: Nowhere  # noqa: F821

    with pytest.raises(TypeError, match=r"Lost\.thing: .*'Nowhere' is not defined"):
        schema_of(Lost)


def test_a_class_without_source_has_no_descriptions_of_its_fields() -> None:
    known: dict[str, Any] = {"dataclass": dataclass, "__name__": __name__}
    exec('@dataclass\nclass Made:\n    a: int\n    "About a."\n', known)
    assert schema_of(known["Made"])["properties"] == {"a": INTEGER}


@dataclass(frozen=True, slots=True)
class Base:
    """What all have."""

    name: str
    """Its name."""


@dataclass(frozen=True, slots=True)
class Derived(Base):
    size: Annotated[int, Description("Its size, said so.")] = 0
    """Its size."""
    area: int = field(init=False, default=4)


def test_fields_and_descriptions_are_inherited_but_not_the_docstring() -> None:
    assert schema_of(Derived) == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {**TEXT, "description": "Its name."},
            "size": {**INTEGER, "description": "Its size, said so."},
        },
    }


def test_two_fields_with_one_name_on_the_wire_are_refused() -> None:
    @dataclass
    class Twice:
        a_b: int = 0
        other: Annotated[int, Name("aB")] = 0

    with pytest.raises(TypeError, match=r"Twice\.other: another field is called aB on the wire"):
        schema_of(Twice)
