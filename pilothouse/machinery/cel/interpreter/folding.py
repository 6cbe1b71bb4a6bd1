"""Expressions that cel-go evaluates when it compiles, so that they cost nothing: literals of constants, constants that
are converted, and membership in a list of constants.

[1, 2]   {"a": 1}   duration("1m")   x in ["a", "b"]
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationCancelled, EvaluationFailed
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame, Step
from pilothouse.machinery.cel.syntax import kind_of

_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_ATTRIBUTES = frozenset(("_[_]", "_[?_]", "_?._"))
RESOLVING = frozenset(("_?_:_", "_[_]", "_[?_]"))
"""Calls that look up for themselves what their arguments name, but for the first."""
_MEMBERSHIP = frozenset(("@in", "_in_"))
_ENOUGH = 1_000_000


def folded(expression: Any, step: Step) -> Step:
    """The step, or its value where that is a constant. A list that a loop builds on must not be given here."""
    if kind_of(expression) == "const_expr" or not is_constant(expression):
        return step
    try:
        value = step(ExecutionFrame({}, _ENOUGH))
    except (EvaluationFailed, EvaluationCancelled):
        return step
    return lambda frame: value


def is_constant(expression: Any) -> bool:
    match kind_of(expression):
        case "const_expr":
            return True
        case "list_expr":
            return not expression.list_expr.optional_indices and all(map(is_constant, expression.list_expr.elements))
        case "struct_expr":
            struct = expression.struct_expr
            return not struct.message_name and all(map(_is_constant_entry, struct.entries))
        case "call_expr":
            call = expression.call_expr
            is_conversion = call.function in _CONVERSIONS and not call.HasField("target") and len(call.args) == 1
            return is_conversion and is_constant(call.args[0])
    return False


def _is_constant_entry(entry: Any) -> bool:
    return not entry.optional_entry and is_constant(entry.map_key) and is_constant(entry.value)


def is_looked_up(function: str, arguments: list[Any]) -> bool:
    """Whether a call is membership in a list of constants, which is made a set."""
    if function not in _MEMBERSHIP or kind_of(arguments[1]) != "list_expr" or not is_constant(arguments[1]):
        return False
    elements = arguments[1].list_expr.elements
    return all(kind_of(each) == "const_expr" and not each.const_expr.HasField("bytes_value") for each in elements)


def resolved_by_call(expression: Any, step: Step) -> Step:
    """An argument of such a call. One that only names something costs what its parts cost, and nothing more."""
    kind = kind_of(expression)
    names = kind == "ident_expr" or (kind == "select_expr" and not expression.select_expr.test_only)
    if not (names or (kind == "call_expr" and expression.call_expr.function in _ATTRIBUTES)):
        return step

    def resolved(frame: ExecutionFrame) -> Any:
        value = step(frame)
        frame.cost -= 1
        return value

    return resolved
