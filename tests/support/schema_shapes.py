"""Schemas made together with a value in which every field is set, so that neither can drift from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pilothouse.client import Json

_DESCRIPTION = (
    "{} says what is wanted here, at some length, as generated definitions do: most of their bytes are such text. "
    "When it is left out, whoever works on the object chooses."
)
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


@dataclass(frozen=True)
class Shape:
    schema: Json
    example: Any

    def but(self, **schema: Any) -> Shape:
        return Shape(self.schema | schema, self.example)


def text(example: str = "text", **schema: Any) -> Shape:
    return Shape({"type": "string", **schema}, example)


def choice(*values: str, **schema: Any) -> Shape:
    return text(values[0], enum=list(values), **schema)


def number(example: int = 1, **schema: Any) -> Shape:
    return Shape({"type": "integer", **schema}, example)


def flag(example: bool = True, **schema: Any) -> Shape:
    return Shape({"type": "boolean", **schema}, example)


def int_or_string(example: int | str) -> Shape:
    return Shape({"x-kubernetes-int-or-string": True}, example)


def quantity(example: int | str = "1Gi") -> Shape:
    pattern = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
    both = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "pattern": pattern}
    return Shape(both, example)


def anything(example: Any) -> Shape:
    return Shape({"type": "object", _PRESERVE: True}, example)


def embedded(example: Json) -> Shape:
    """A whole object, with its kind and metadata."""
    return Shape({"type": "object", "x-kubernetes-embedded-resource": True, _PRESERVE: True}, example)


def struct(required: Sequence[str] = (), rules: Sequence[Json] = (), /, **fields: Shape) -> Shape:
    properties = {name: field.schema | {"description": _DESCRIPTION.format(name)} for name, field in fields.items()}
    schema: Json = {"type": "object", "properties": properties}
    schema |= {"required": list(required)} if required else {}
    schema |= {"x-kubernetes-validations": list(rules)} if rules else {}
    return Shape(schema, {name: field.example for name, field in fields.items()})


def table(value: Shape, **schema: Any) -> Shape:
    """From any key to such a value."""
    return Shape({"type": "object", "additionalProperties": value.schema, **schema}, {"key": value.example})


def listing(item: Shape, **schema: Any) -> Shape:
    return Shape({"type": "array", "items": item.schema, **schema}, [item.example])


def unique(item: Shape, **schema: Any) -> Shape:
    return listing(item, **{"x-kubernetes-list-type": "set"}, **schema)


def list_map(item: Shape, *keys: str, **schema: Any) -> Shape:
    """Items are told apart by these keys."""
    return listing(item, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}, **schema)


def rule(expression: str, message: str, **more: Any) -> Json:
    return {"rule": expression, "message": message, **more}


def resource(spec: Shape, status: Shape) -> Json:
    """The schema of a version."""
    properties = {"spec": spec.schema, "status": status.schema}
    kind = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {"type": "object", "properties": kind | properties, "required": ["spec"]}
