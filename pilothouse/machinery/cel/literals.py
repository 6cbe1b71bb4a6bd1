"""A list or a map that is written out has entries of one type, unless it is what `format` fills in.

Entries that may be anything are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pilothouse.machinery.cel.complaint import Complaint
from pilothouse.machinery.cel.syntax import SyntaxTree, kind_of, parts

_EXEMPT = "format"
_PRIMITIVES = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("", "any", "google.protobuf.Timestamp", "google.protobuf.Duration")


def mixed_literals(tree: SyntaxTree) -> Iterator[Complaint]:
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
    """As Go prints it; empty for what may be anything, or is made of it."""
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
