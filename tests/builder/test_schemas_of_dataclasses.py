"""Schemas of classes with fields: dataclasses and TypedDicts."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import pytest
from schemas_of_specs import definition_errors

from pilothouse.builder.types.markers import (
    Description,
    ListMap,
    Name,
    Nullable,
    PreserveUnknown,
    Rule,
)
from pilothouse.builder.types.wire import schema_of

TEXT = {"type": "string"}
INTEGER = {"type": "integer", "format": "int64"}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


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
        part: Part  # type: ignore[name-defined]  # noqa: F821 - a name that only we find in the class around it

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
            parts: list[Part]  # type: ignore[name-defined]  # noqa: F821 - as above

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


def test_a_name_that_nobody_knows_is_refused_with_class_and_field() -> None:
    @dataclass
    class Lost:
        thing: Nowhere  # type: ignore[name-defined]  # noqa: F821 - which is what is tested

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
