"""The values of expressions: those of JSON are Python's own, the others are here. Lists and maps are never changed.

Values of Kubernetes' types are maps with one marked key, such as `@ip`.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cel.functions.marked_types import TYPES
from pilothouse.machinery.dataclass import dataclass


class UInt(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanoseconds: int
    """Since 1970, in UTC."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    present: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """Stands for data that is not of its declared type: an expression that reads it fails with `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class Type:
    name: str


@dataclass(frozen=True, slots=True)
class Struct:
    """An object that an expression made by naming its type, as in `Object{metadata: …}`."""

    type: str
    fields: dict[str, Any]


NONE = Optional()

_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    Type: "type",
}
_NUMBERS = (int, UInt, float)


def type_name(value: Any) -> str:
    if type(value) is dict and len(value) == 1:
        return TYPES.get(next(iter(value)), "map")
    if type(value) is Struct:
        return value.type
    return _NAMES.get(type(value)) or str(getattr(value, "cel_type", type(value).__name__))


def equal(a: Any, b: Any) -> bool:
    """Numbers of different types may be equal; other values of different types never are."""
    kind = type(a)
    if isinstance(a, list):
        return isinstance(b, list) and _equal_lists(a, b)
    if kind is not type(b):
        return kind in _NUMBERS and type(b) in _NUMBERS and bool(a == b)
    if kind is dict:
        return len(a) == len(b) and all(key in b and equal(value, b[key]) for key, value in a.items())
    if kind is Optional:
        return a.present == b.present and equal(a.value, b.value)
    if kind is Struct:
        return a.type == b.type and equal(a.fields, b.fields)
    return bool(a == b)


def _equal_lists(a: list[Any], b: list[Any]) -> bool:
    by_identity = getattr(a, "equals", None)
    if by_identity is not None:
        return bool(by_identity(b))
    return len(a) == len(b) and all(map(equal, a, b))


def is_zero(value: Any) -> bool:
    if type(value) is Timestamp or type(value) is Duration:
        return value.nanoseconds == 0
    if type(value) is Struct:
        return not value.fields
    return type(value) is not Optional and not value


def shown(value: Any) -> str:
    """Return a key or an index as Go prints it."""
    if type(value) is bool:
        return "true" if value else "false"
    return str(value)
