"""The values of expressions: JSON's values are Python's own, all others are here. Lists and maps are never changed.

A class of another module becomes a CEL type by its attribute `cel_type`; `cel_size` is its size in costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.dataclass import dataclass


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanoseconds: int
    """Since 1970, in UTC."""
    offset: int = field(default=0, compare=False)
    """Seconds east of UTC of the clock that the timestamp was read from."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    present: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class TypedKey:
    """A map's key of type bool, uint or double, which Python would take for the equal int."""

    type: type
    value: Any


def to_key(value: Any) -> Any:
    """Return the representation of a value as a key of a map."""
    return TypedKey(value.__class__, value) if value.__class__ in _TYPED_KEYS else value


def from_key(key: Any) -> Any:
    """Return the value that `to_key` got."""
    return key.value if key.__class__ is TypedKey else key


_TYPED_KEYS = frozenset((bool, UInt, float))


MISSING = object()
"""In place of a value that a list, a map or an object does not have."""


def find_entry(mapping: dict[Any, Any], key: Any) -> Any:
    """Return the value of the map's key that equals `key`, or MISSING.

    An int finds a uint, and the reverse. A double finds an int and a uint, but is found by a double only.
    """
    if key.__class__ is str:
        return mapping.get(key, MISSING)
    candidates = [to_key(key)]
    if key.__class__ is UInt:
        candidates.append(int(key))
    elif key.__class__ is int and key >= 0:
        candidates.append(to_key(UInt(key)))
    elif key.__class__ is float and key.is_integer():
        candidates += [int(key), to_key(UInt(int(key)))]
    try:
        return next((mapping[candidate] for candidate in candidates if candidate in mapping), MISSING)
    except TypeError:  # lists and maps
        return MISSING


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that violates its declared type. Expressions that read the value fail with `why`."""

    why: str


def read(value: Any) -> Any:
    """Return the value. Raises EvaluationFailed for a misfit."""
    if value.__class__ is Misfit:
        raise EvaluationFailed(value.why)
    return value


@dataclass(frozen=True, slots=True)
class Type:
    name: str


@dataclass(frozen=True, slots=True)
class Struct:
    """An object that an expression constructed, as in `Object{metadata: …}`."""

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
_NUMBERS = frozenset((int, UInt, float))


def type_name(value: Any) -> str:
    if type(value) is Struct:
        return value.type
    return _NAMES.get(type(value)) or str(getattr(value, "cel_type", type(value).__name__))


def no_such_overload(function: str, arguments: Sequence[Any]) -> EvaluationFailed:
    return EvaluationFailed(f"no such overload: {function}({', '.join(map(type_name, arguments))})")


def equal(a: Any, b: Any) -> bool:
    """Numbers of different types may be equal; other values of different types never are.

    Raises EvaluationFailed where a type of Kubernetes is compared with another type.
    """
    kind = type(a)
    if kind is str or kind is bool:
        return kind is type(b) and bool(a == b)
    if a is None or b is None:
        return a is b
    if isinstance(a, list):
        return isinstance(b, list) and _equal_lists(a, b)
    if kind in _NUMBERS:
        if type(b) not in _NUMBERS:
            return False
        return float(a) == float(b) if kind is float or type(b) is float else bool(a == b)
    if kind is dict:
        return type(b) is dict and _equal_maps(a, b)
    if kind is Optional:
        return type(b) is Optional and a.present == b.present and (not a.present or equal(a.value, b.value))
    if kind is Struct:
        return type(b) is Struct and a.type == b.type and equal(a.fields, b.fields)
    compare = getattr(a, "cel_equal", None)
    if compare is not None:
        same: bool = compare(b)
        return same
    return kind is type(b) and bool(a == b)


def _equal_lists(a: list[Any], b: list[Any]) -> bool:
    by_identity = getattr(a, "equals", None)
    if by_identity is not None:
        return bool(by_identity(b))
    return len(a) == len(b) and all(map(equal, a, b))


def _equal_maps(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    if len(a) != len(b):
        return False
    for key, value in a.items():
        other = find_entry(b, from_key(key))
        if other is MISSING or not equal(value, other):
            return False
    return True


def is_zero(value: Any) -> bool:
    if type(value) is Timestamp:
        return value.nanoseconds == _ZERO_TIME
    if type(value) is Duration:
        return value.nanoseconds == 0
    if type(value) is Struct:
        return not value.fields
    return (type(value) in _ZEROABLE or isinstance(value, list)) and not value


_ZEROABLE = (type(None), bool, int, UInt, float, str, bytes, dict)
_ZERO_TIME = -62135596800 * 10**9
"""Go's zero time, in the year 1."""


def shown(value: Any) -> str:
    """Return a key, an index or an item as Go's %v prints it."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return number_text(value)
    if type(value) is bytes:
        return f"[{' '.join(map(str, value))}]"
    return "null" if value is None else str(value)


def number_text(value: float) -> str:
    """Return a double in Go's shortest form, with an exponent below 1e-04 and from 1e+06 on."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    figures, exponent = _figures(value)
    sign = "-" if value < 0 else ""
    if -4 <= exponent < 6:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{figures}"
        padded = figures.ljust(exponent + 1, "0")
        return sign + padded[: exponent + 1] + (f".{padded[exponent + 1 :]}" if len(padded) > exponent + 1 else "")
    fraction = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{fraction}e{exponent:+03d}"


def _figures(value: float) -> tuple[str, int]:
    """Return the fewest digits that read back as the same double, and the power of ten of the first: ("15", 6)."""
    digits, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = digits.partition(".")
    figures = whole + fraction
    leading = len(figures) - len(figures.lstrip("0"))
    return figures.strip("0"), int(power or "0") + len(whole) - 1 - leading
