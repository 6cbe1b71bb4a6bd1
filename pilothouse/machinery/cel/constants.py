"""Constants that no value can be made of, such as `duration('soon')`, are refused when an expression is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.cel.complaint import Complaint
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.syntax import SyntaxTree, kind_of

_EVALUATED = ("duration", "timestamp")
_PATTERN = "matches"
_CHECKED = (*_EVALUATED, _PATTERN)
_COST_LIMIT = 1_000_000


def wrong_constants(tree: SyntaxTree) -> Iterator[Complaint]:
    for call in tree.calls():
        name = call.call_expr.function
        if name in _CHECKED and not _is_good(tree, call):
            yield Complaint(tree.position(call.call_expr.args[0]), f"invalid {name} argument")


def _is_good(tree: SyntaxTree, call: Any) -> bool:
    """Only a first argument that is a constant can be known to be wrong."""
    arguments = call.call_expr.args
    if not arguments or kind_of(arguments[0]) != "const_expr":
        return True
    if call.call_expr.function == _PATTERN:
        from pilothouse.machinery.cel.patterns import refusal

        return not refusal(arguments[0].const_expr.string_value)
    return _can_be_evaluated(tree, call)


def _can_be_evaluated(tree: SyntaxTree, call: Any) -> bool:
    from pilothouse.machinery.cel.interpreter.frame import Frame
    from pilothouse.machinery.cel.interpreter.planner import Planner

    try:
        Planner(tree).plan(call)(Frame({}, _COST_LIMIT))
    except EvaluationFailed:
        return False
    return True
