"""Constants, variables, selections and literals of lists, maps and objects.

A variable with the fields and items selected from it is an attribute: each part costs one. A selection from any other
value costs one more, because that value becomes an attribute first.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame, Step
from pilothouse.machinery.cel.interpreter.values import (
    MISSING,
    NONE,
    Duration,
    Misfit,
    Optional,
    Struct,
    Timestamp,
    Type,
    UInt,
    find_entry,
    read,
    shown,
    to_key,
    type_name,
)
from pilothouse.machinery.cel.library.costs import LIST, MAP, STRUCT

_QUALIFIERS = frozenset((str, int, UInt, bool, float))
"""Types of keys and indices."""


class Constant:
    """A step whose value is known when it is planned."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, frame: ExecutionFrame) -> Any:
        return self.value


def is_qualifier(value: Any) -> bool:
    """Whether a value can be a key or an index."""
    return value.__class__ in _QUALIFIERS


def type_constant(name: str) -> Constant:
    return Constant(Type(name))


def variable(name: str) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        frame.cost += 1
        try:
            value = frame.variables[name]
        except KeyError:
            raise EvaluationFailed(f"no such attribute(s): {name}") from None
        if value.__class__ is Misfit:
            raise EvaluationFailed(value.why)
        return value

    return step


def composed_variable(name: str) -> Step:
    """`variables.name` of a policy."""
    path = f"variables.{name}"

    def step(frame: ExecutionFrame) -> Any:
        frame.cost += 2
        try:
            return frame.variables[path]
        except KeyError:
            raise EvaluationFailed(f"no such key: {name}") from None

    return step


def selection(operand: Step, field: str, cost: int) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = operand(frame)
        if value.__class__ is dict:
            frame.cost += cost
            found = value.get(field, MISSING)
            if found is MISSING:
                raise EvaluationFailed(f"no such key: {field}")
            if found.__class__ is Misfit:
                raise EvaluationFailed(found.why)
            return found
        if value.__class__ is Optional:
            return _optional_item(frame, value, field, cost)
        frame.cost += cost
        return read(item(value, field))

    return step


def _optional_item(frame: ExecutionFrame, optional: Optional, key: Any, cost: int) -> Optional:
    found = find(optional.value, key) if optional.present else MISSING
    frame.cost += cost if found is not MISSING else cost - 1
    return NONE if found is MISSING else Optional(True, read(found))


def presence(operand: Step, field: str, cost: int) -> Step:
    """has(operand.field)"""

    def step(frame: ExecutionFrame) -> bool:
        value = operand(frame)
        frame.cost += cost - 1
        if type(value) is Optional:
            if not value.present:
                return False
            value = value.value
        return find(value, field) is not MISSING

    return step


def indexing(container: Step, key: Step, cost: int) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value, wanted = container(frame), key(frame)
        if wanted.__class__ not in _QUALIFIERS:
            raise EvaluationFailed(f"invalid qualifier type: {go_type(wanted)}")
        if type(value) is Optional:
            return _optional_item(frame, value, wanted, cost)
        frame.spend(cost)
        return read(item(value, wanted))

    return step


def optional_indexing(container: Step, key: Step, cost: int) -> Step:
    """`container[?key]` and `container.?key`"""

    def step(frame: ExecutionFrame) -> Optional:
        value, wanted = container(frame), key(frame)
        if wanted.__class__ not in _QUALIFIERS:
            raise EvaluationFailed(f"invalid qualifier type: {go_type(wanted)}")
        if type(value) is Optional:
            return _optional_item(frame, value, wanted, cost)
        found = find(value, wanted)
        frame.spend(cost if found is not MISSING else cost - 1)
        return NONE if found is MISSING else Optional(True, read(found))

    return step


def item(container: Any, key: Any) -> Any:
    """Return `container[key]` or `container.key`. Raises EvaluationFailed."""
    found = find(container, key)
    if found is not MISSING:
        return found
    if isinstance(container, list):
        raise EvaluationFailed(f"index out of bounds: {shown(key)}")
    raise EvaluationFailed(f"no such key: {shown(key)}")


def find(container: Any, key: Any) -> Any:
    """Return the item, or MISSING."""
    if container.__class__ is dict:
        return find_entry(container, key)
    if isinstance(container, list):
        position = _position(key)
        return container[position] if 0 <= position < len(container) else MISSING
    if container.__class__ is Struct:
        return container.fields.get(key, MISSING)
    return MISSING


def _position(key: Any) -> int:
    if type(key) is float and not key.is_integer():
        raise EvaluationFailed(f"unsupported index value {shown(key)} in list")
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise EvaluationFailed(f"unsupported index type '{type_name(key)}' in list")
    return int(key)


def list_of(items: list[tuple[Step, bool]]) -> Step:
    def step(frame: ExecutionFrame) -> list[Any]:
        made = []
        for each, optional in items:
            value = each(frame)
            if not optional:
                made.append(value)
            elif _require_optional(value).present:
                made.append(value.value)
        frame.spend(LIST)
        return made

    return step


def _require_optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise EvaluationFailed(f"cannot initialize optional list element from non-optional value {shown(value)}")
    return value


def map_of(pairs: list[tuple[Step, Step, bool]]) -> Step:
    def step(frame: ExecutionFrame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, each, optional in pairs:
            name, value = key(frame), each(frame)
            if name.__class__ not in _KEYS and not isinstance(name, Hashable):
                continue  # nothing can look it up
            if not optional:
                made[to_key(name)] = value
            elif type(value) is not Optional:
                why = f"cannot initialize optional entry '{shown(name)}' from non-optional value {shown(value)}"
                raise EvaluationFailed(why)
            elif value.present:
                made[to_key(name)] = value.value
        frame.spend(MAP)
        return made

    return step


_KEYS = frozenset((str, int, bool, float))
_GO_TYPES: dict[type, str] = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    Type: "*types.Type",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def go_type(value: Any) -> str:
    """Return the type of upstream's representation of a value."""
    return _GO_TYPES.get(type(value)) or f"cel.{type(value).__name__}"


def struct_of(name: str, fields: list[tuple[str, Step, bool]]) -> Step:
    def step(frame: ExecutionFrame) -> Struct:
        made: dict[str, Any] = {}
        for field, each, optional in fields:
            value = each(frame)
            if not optional:
                made[field] = value
            elif type(value) is not Optional:
                why = f"cannot initialize optional entry '{field}' from non-optional value {shown(value)}"
                raise EvaluationFailed(why)
            elif value.present:
                made[field] = value.value
        frame.spend(STRUCT)
        return Struct(name, made)

    return step
