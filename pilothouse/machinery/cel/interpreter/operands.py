"""Constants, variables, selections and literals of lists, maps and objects."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cel.interpreter import costs
from pilothouse.machinery.cel.interpreter.collections import find, index
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame, Step
from pilothouse.machinery.cel.interpreter.values import NONE, Misfit, Optional, Struct, Type, UInt
from pilothouse.machinery.cel.messages import unmangled

_TYPES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def constant(expression: Any) -> Step:
    value = _constant_value(expression)
    return lambda frame: value


def _constant_value(expression: Any) -> Any:
    for field in ("bool_value", "int64_value", "double_value", "string_value", "bytes_value"):
        if expression.HasField(field):
            return getattr(expression, field)
    return UInt(expression.uint64_value) if expression.HasField("uint64_value") else None


def variable(name: str, *, is_type: bool = False) -> Step:
    if is_type:
        kind = Type(_TYPES.get(name, name))
        return lambda frame: kind

    def step(frame: ExecutionFrame) -> Any:
        frame.cost += 1
        try:
            return _read(frame.variables[name])
        except KeyError:
            raise EvaluationFailed(f"no such attribute(s): {name}") from None

    return step


def _read(value: Any) -> Any:
    if type(value) is Misfit:
        raise EvaluationFailed(value.why)
    return value


def selection(operand: Step, field: str) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if type(value) is dict:
            if field in value:
                return _read(value[field])
            raise EvaluationFailed(f"no such key: {field}")
        if type(value) is Optional:
            return find(value.value, field) if value.present else NONE
        return _read(index(value, field))

    return step


def presence(operand: Step, field: str) -> Step:
    def step(frame: ExecutionFrame) -> bool:
        value = operand(frame)
        if type(value) is Optional:
            value = value.value
        return not isinstance(value, list) and find(value, field).present

    return step


def indexing(container: Step, key: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value, wanted = container(frame), key(frame)
        frame.spend(1)
        if type(value) is Optional:
            return find(value.value, wanted) if value.present else NONE
        return _read(index(value, wanted))

    return step


def optional_indexing(container: Step, key: Step) -> Step:
    """`container[?key]` and `container.?key`"""

    def step(frame: ExecutionFrame) -> Optional:
        value, wanted = container(frame), key(frame)
        if type(value) is Optional:
            value = value.value if value.present else {}
        found = find(value, wanted)
        frame.spend(1 if found.present else 0)
        return found

    return step


def list_of(items: list[tuple[Step, bool]]) -> Step:
    def step(frame: ExecutionFrame) -> list[Any]:
        made = []
        for item, optional in items:
            value = item(frame)
            if not optional:
                made.append(value)
            elif value.present:
                made.append(value.value)
        frame.spend(costs.LIST)
        return made

    return step


def map_of(pairs: list[tuple[Step, Step, bool]]) -> Step:
    def step(frame: ExecutionFrame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, item, optional in pairs:
            name, value = key(frame), item(frame)
            if not optional:
                made[name] = value
            elif value.present:
                made[name] = value.value
        frame.spend(costs.MAP)
        return made

    return step


def struct_of(name: str, fields: list[tuple[str, Step, bool]]) -> Step:
    kind = unmangled(name)

    def step(frame: ExecutionFrame) -> Struct:
        made: dict[str, Any] = {}
        for field, item, optional in fields:
            value = item(frame)
            if not optional:
                made[field] = value
            elif value.present:
                made[field] = value.value
        frame.spend(costs.STRUCT)
        return Struct(kind, made)

    return step
