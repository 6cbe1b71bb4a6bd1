"""Calls that do not need all of their arguments: a decided `||` absorbs the failure of its other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import DeferredFailure, ExecutionFrame, Step, attempted
from pilothouse.machinery.cel.interpreter.loops import not_strictly_false
from pilothouse.machinery.cel.interpreter.values import Misfit, Optional, equal, read
from pilothouse.machinery.cel.library.costs import compared


def _no_such_overload() -> EvaluationFailed:
    return EvaluationFailed("no such overload")


def both_sides(left: Step, right: Step, frame: ExecutionFrame) -> tuple[Any, Any]:
    """Evaluate both operands. The right one is evaluated, and the call is paid for, even if the left one fails."""
    try:
        one = left(frame)
    except EvaluationFailed:
        attempted(right, frame)
        frame.spend(1)
        raise
    try:
        return one, right(frame)
    except EvaluationFailed:
        frame.spend(1)
        raise


def _decided_by(decisive: bool) -> Callable[[Step, Step], Step]:
    def plan(left: Step, right: Step) -> Step:
        def step(frame: ExecutionFrame) -> bool:
            try:
                one = left(frame)
            except EvaluationFailed as error:
                one = DeferredFailure(error.with_traceback(None))
            if one is decisive:
                return bool(decisive)
            other = attempted(right, frame)
            if other is decisive:
                return bool(decisive)
            for value in (one, other):
                if value.__class__ is DeferredFailure:
                    raise value.error
                if value.__class__ is not bool:
                    raise _no_such_overload()
            return not decisive

        return step

    return plan


def _conditional(condition: Step, positive: Step, negative: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = condition(frame)
        if value.__class__ is not bool:
            raise _no_such_overload()
        chosen = positive(frame) if value else negative(frame)
        return _requalified(chosen) if chosen.__class__ is Optional else chosen

    return step


def _requalified(optional: Optional) -> Optional:
    """Unwrap and wrap an optional as upstream's attributes do, which loses optionals and types of Kubernetes in it."""
    inner = optional.value
    if inner.__class__ is Optional:
        return Optional(True, inner.value)
    name = _NATIVE.get(getattr(inner, "cel_type", ""))
    if name is not None:
        return Optional(True, Misfit(f"unsupported conversion to ref.Val: ({name}){inner}"))
    return optional


_NATIVE = {
    "kubernetes.URL": "*url.URL",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.Quantity": "*resource.Quantity",
    "net.IP": "netip.Addr",
    "net.CIDR": "netip.Prefix",
}


def _equality(expected: bool) -> Callable[[Step, Step], Step]:
    def plan(left: Step, right: Step) -> Step:
        def step(frame: ExecutionFrame) -> bool:
            a, b = both_sides(left, right, frame)
            frame.spend(1 if hasattr(a, "cel_equal") else compared((a, b), None))
            try:
                return equal(a, b) is expected
            except EvaluationFailed:
                if expected:
                    raise
                return True

        return step

    return plan


def _or(optional: Step, other: Step) -> Step:
    """A value that is no optional stays as it is, as in upstream."""

    def step(frame: ExecutionFrame) -> Any:
        value = optional(frame)
        return other(frame) if value.__class__ is Optional and not value.present else value

    return step


def _or_value(optional: Step, other: Step) -> Step:
    def step(frame: ExecutionFrame) -> Any:
        value = optional(frame)
        if value.__class__ is not Optional:
            return value
        return read(value.value) if value.present else other(frame)

    return step


LAZY: dict[str, Callable[..., Step]] = {
    "_&&_": _decided_by(False),
    "_||_": _decided_by(True),
    "_?_:_": _conditional,
    "_==_": _equality(True),
    "_!=_": _equality(False),
    "or": _or,
    "orValue": _or_value,
    "@not_strictly_false": not_strictly_false,
}
