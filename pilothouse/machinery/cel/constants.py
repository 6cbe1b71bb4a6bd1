"""Constants that no value can be made of, such as `duration('soon')`, are refused when an expression is compiled."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.syntax import SyntaxTree, kind_of

_EVALUATED = ("duration", "timestamp")
_PATTERN = "matches"
_CHECKED = (*_EVALUATED, _PATTERN)
_COST_LIMIT = 1_000_000


def complaints(program: Any, source: str) -> list[str]:
    """In the words of cel-go, in the order of the source."""
    if not any(name in source for name in _CHECKED):
        return []
    tree = SyntaxTree(program)
    wrong = [call for call in tree.calls() if call.call_expr.function in _CHECKED and not _is_good(tree, call)]
    positions = {tree.position(call.call_expr.args[0]): call.call_expr.function for call in wrong}
    return [_complaint(source, place, f"invalid {name} argument") for place, name in sorted(positions.items())]


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


def _complaint(source: str, position: int, problem: str) -> str:
    line_start = source.rfind("\n", 0, position) + 1
    line, column = source.count("\n", 0, position) + 1, position - line_start
    text = source[line_start:].partition("\n")[0]
    return f"ERROR: <input>:{line}:{column + 1}: {problem}\n | {text}\n | {'.' * column}^"
