"""Mistakes in literals that cel-go finds after type checking.

A list or a map that is written out has entries of one type, unless it is what `format` fills in; entries that may be
anything are not judged. A constant must be one that a value can be made of, which `duration('soon')` is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.syntax import SyntaxTree, kind_of, parts
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Complaint:
    position: int
    """In characters from the start of the source."""
    problem: str

    def within(self, source: str) -> str:
        line_start = source.rfind("\n", 0, self.position) + 1
        line, column = source.count("\n", 0, self.position) + 1, self.position - line_start
        text = source[line_start:].partition("\n")[0]
        return f"ERROR: <input>:{line}:{column + 1}: {self.problem}\n | {text}\n | {'.' * column}^"


_EXEMPT = "format"
_PRIMITIVES = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("", "any", "google.protobuf.Timestamp", "google.protobuf.Duration")
_EVALUATED = ("duration", "timestamp")
_PATTERN = "matches"
_CHECKED = (*_EVALUATED, _PATTERN)
_COST_LIMIT = 1_000_000


def mixed_literals(tree: SyntaxTree) -> Iterator[Complaint]:
    """Yield a complaint for each entry of a list or map whose type is not that of the first."""
    waiting = [tree.root]
    while waiting:
        expression = waiting.pop()
        kind = kind_of(expression)
        if kind == "call_expr" and expression.call_expr.function == _EXEMPT:
            continue
        if kind == "list_expr":
            yield from islice(_mismatches(tree, expression.list_expr.elements), 1)
        elif kind == "struct_expr" and not expression.struct_expr.message_name:
            entries = expression.struct_expr.entries
            yield from _mismatches(tree, [each.map_key for each in entries])
            yield from _mismatches(tree, [each.value for each in entries])
        waiting.extend(parts(expression))


def _mismatches(tree: SyntaxTree, expressions: Iterable[Any]) -> Iterator[Complaint]:
    expected = ""
    for each in expressions:
        found = _name(tree.type_of(each))
        expected = expected or found
        if found and found != expected:
            yield Complaint(tree.position(each), f"expected type '{expected}' but found '{found}'")


def _name(kind: Any) -> str:
    """Return the type's name as Go prints it; "" for a type that may be anything, or is made of such a type."""
    if kind is None:
        return ""
    if kind.HasField("primitive"):
        return _PRIMITIVES[kind.primitive]
    if kind.HasField("well_known"):
        return _WELL_KNOWN[kind.well_known]
    if kind.HasField("list_type"):
        return _of("list", kind.list_type.elem_type)
    if kind.HasField("map_type"):
        return _of("map", kind.map_type.key_type, kind.map_type.value_type)
    return ""


def _of(name: str, *kinds: Any) -> str:
    names = [_name(each) for each in kinds]
    return f"{name}({', '.join(names)})" if all(names) else ""


def wrong_constants(tree: SyntaxTree) -> Iterator[Complaint]:
    """Yield a complaint for each constant from which no duration, timestamp or pattern can be made."""
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
    from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame
    from pilothouse.machinery.cel.interpreter.planner import Planner

    try:
        Planner(tree).plan(call)(ExecutionFrame({}, _COST_LIMIT))
    except EvaluationFailed:
        return False
    return True
