"""Checks of literals after type checking: constants of durations, timestamps and patterns, templates of format(), and
lists and maps whose entries have different types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.machinery.cel.front.source import Issue
from pilothouse.machinery.cel.front.tree import Call, Const, ListNode, MapNode, Node
from pilothouse.machinery.cel.front.types import Type, unwrap_optional
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.library.formatting import REFUSALS, walk_template
from pilothouse.machinery.cel.library.table import functions

_FORMATTED = {
    "s": frozenset(
        ["list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"]
    ),
    "d": frozenset(("int", "uint")),
    "f": frozenset(("double", "string")),
    "e": frozenset(("double", "string")),
    "b": frozenset(("int", "uint", "bool")),
    "x": frozenset(("int", "uint", "string", "bytes")),
    "X": frozenset(("int", "uint", "string", "bytes")),
    "o": frozenset(("int", "uint")),
}


_LITERALS = frozenset(("duration", "timestamp", "matches"))
"""Functions whose first argument is checked if it is a literal."""


def validate(nodes: Iterable[Node]) -> list[Issue]:
    """Check the nodes that the checker collected."""
    issues: list[Issue] = []
    for node in nodes:
        if type(node) is Call:
            issues += _check_call(node)
        elif type(node) is ListNode:
            issues += _check_list(node)
        elif type(node) is MapNode:
            issues += _check_map(node)
    return issues


def _check_call(node: Call) -> Iterator[Issue]:
    if node.function == "format":
        yield from _check_format(node)
        return
    argument = node.args[0] if node.args and node.function in _LITERALS else None
    if type(argument) is Const and not _is_good(node.function, argument):
        yield Issue(argument.position, f"invalid {node.function} argument")


def _is_good(function: str, argument: Const) -> bool:
    if function == "matches":
        from pilothouse.machinery.cel.patterns import refusal

        return not refusal(argument.value)
    for row in functions()[function]:
        if row.parameters[0] is argument.type and row.run is not None:
            try:
                row.run(argument.value)
            except EvaluationFailed:
                return False
            return True
    return False


def _check_list(node: ListNode) -> Iterator[Issue]:
    expected: Type | None = None
    for index, element in enumerate(node.elements):
        kind = unwrap_optional(element.type)[0] if index in node.optional else element.type
        expected = expected or kind
        if kind is not expected:
            yield _mismatch(element, expected, kind)
            return


def _check_map(node: MapNode) -> Iterator[Issue]:
    if not node.entries:
        return
    keys: Type | None = None
    values: Type | None = None
    for entry in node.entries:
        kind = unwrap_optional(entry.value.type)[0] if entry.optional else entry.value.type
        keys, values = keys or entry.key.type, values or kind
        if entry.key.type is not keys:
            yield _mismatch(entry.key, keys, entry.key.type)
        if kind is not values:
            yield _mismatch(entry.value, values, kind)


def _mismatch(node: Node, expected: Type, found: Type) -> Issue:
    return Issue(node.position, f"expected type '{expected.text}' but found '{found.text}'")


class _Misplaced(EvaluationFailed):
    """An argument of the wrong type, at its own position."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def _check_format(node: Call) -> Iterator[Issue]:
    template = node.target
    if type(template) is not Const or type(template.value) is not str or len(node.args) != 1:
        return
    listed = node.args[0]
    if type(listed) is not ListNode:
        return

    def fill(letter: str, precision: int, index: int) -> str:
        wrong = _misformatted(listed.elements[index], letter)
        if wrong is not None:
            raise _Misplaced(REFUSALS[letter] + wrong.type.name, wrong.position)
        return ""

    try:
        used = walk_template(template.value, fill, len(listed.elements), lenient=True)[1]
    except EvaluationFailed as error:
        yield Issue(getattr(error, "position", node.position), str(error))
        return
    if len(listed.elements) > used:
        count = f"(expected {used}, got {len(listed.elements)})"
        yield Issue(node.position, f"too many arguments supplied to string.format {count}")


def _misformatted(node: Node, letter: str) -> Node | None:
    """Return the first part whose type the clause does not take."""
    if node.type.kind != "dyn" and node.type.kind not in _FORMATTED[letter]:
        return node
    if letter != "s" or type(node) not in (ListNode, MapNode):
        return None
    return next((wrong for wrong in (_misformatted(child, letter) for child in node.children()) if wrong), None)
