"""Calls that do not need all of their arguments: a decided `||` forgives what fails on its other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.cel.interpreter.costs import CALL_COSTS
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import DeferredFailure, ExecutionFrame, Step, attempted
from pilothouse.machinery.cel.interpreter.loops import not_strictly_false
from pilothouse.machinery.cel.interpreter.operands import indexing, optional_indexing
from pilothouse.machinery.cel.interpreter.values import Optional, equal

_compared = CALL_COSTS["_==_"]


def _no_such_overload() -> EvaluationFailed:
    return EvaluationFailed("no such overload")


def _decided_by(decisive: bool) -> Callable[[Step, Step], Step]:
    def plan(left: Step, right: Step) -> Step:
        def step(frame: ExecutionFrame) -> bool:
            values: list[Any] = []
            for side in (left, right):
                value = attempted(side, frame)
                if value is decisive:
                    return bool(value)
                values.append(value)
            _require_bools(values)
            return not decisive

        return step

    return plan


def _require_bools(values: list[Any]) -> None:
    for value in values:
        if type(value) is DeferredFailure:
            raise value.error
        if type(value) is not bool:
            raise _no_such_overload()


def _conditional(condition: Step, positive: Step, negative: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = condition(frame)
        if type(value) is not bool:
            raise _no_such_overload()
        return positive(frame) if value else negative(frame)

    return step


def _equality(expected: bool) -> Callable[[Step, Step], Step]:
    def plan(left: Step, right: Step) -> Step:
        def step(frame: ExecutionFrame) -> bool:
            a, b = left(frame), right(frame)
            frame.spend(_compared((a, b), None))
            return equal(a, b) is expected

        return step

    return plan


def _or(optional: Step, other: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = _as_optional(optional(frame))
        return value if value.present else other(frame)

    return step


def _or_value(optional: Step, other: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = _as_optional(optional(frame))
        return value.value if value.present else other(frame)

    return step


def _as_optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise _no_such_overload()
    return value


LAZY: dict[str, Callable[..., Step]] = {
    "_&&_": _decided_by(False),
    "_||_": _decided_by(True),
    "_?_:_": _conditional,
    "_==_": _equality(True),
    "_!=_": _equality(False),
    "_[_]": indexing,
    "_[?_]": optional_indexing,
    "_?._": optional_indexing,
    "or": _or,
    "orValue": _or_value,
    "@not_strictly_false": not_strictly_false,
    "__not_strictly_false__": not_strictly_false,
}
