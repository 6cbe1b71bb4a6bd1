"""Nodes from the parts that a parser recognized, with the checks that the grammar leaves open."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cel.front import lexer
from pilothouse.machinery.cel.front.macros import BIND, GLOBAL, MEMBERS, SORT_BY, MacroError
from pilothouse.machinery.cel.front.source import Issue
from pilothouse.machinery.cel.front.tree import Broken, Call, Const, Ident, Node
from pilothouse.machinery.cel.interpreter.values import UInt
from pilothouse.machinery.dataclass import dataclass

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
"""Names that no variable may have."""
BINARY = {
    **{sign: f"_{sign}_" for sign in ("<", "<=", ">", ">=", "==", "!=", "*", "/", "%", "+", "-")},
    "in": "@in",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The macros that an expression may use besides the standard ones."""

    sort_by: bool = True
    bind: bool = False

    def members(self) -> dict[tuple[str, int], Any]:
        return {**MEMBERS, **(SORT_BY if self.sort_by else {}), **(BIND if self.bind else {})}


class Builder:
    """Makes nodes and collects issues."""

    def __init__(self, dialect: Dialect) -> None:
        self.issues: list[Issue] = []
        self._members = dialect.members()

    def broken(self, position: int, message: str) -> Broken:
        self.issues.append(Issue(position, message))
        return Broken(position)

    def ident(self, at: int, name: str, *, start: int, leading_dot: bool) -> Node:
        if name in RESERVED:
            return self.broken(start, f"reserved identifier: {name}")
        return Ident(at, f".{name}" if leading_dot else name)

    def call(self, at: int, name: str, args: list[Node], *, start: int, leading_dot: bool) -> Node:
        if name in RESERVED:
            return self.broken(start, f"reserved identifier: {name}")
        if leading_dot:
            return Call(at, f".{name}", args)
        return self._expanded(GLOBAL.get((name, len(args))), at, None, args) or Call(at, name, args)

    def member_call(self, at: int, name: str, target: Node, args: list[Node]) -> Node:
        return self._expanded(self._members.get((name, len(args))), at, target, args) or Call(at, name, args, target)

    def _expanded(self, macro: Any, at: int, target: Node | None, args: list[Node]) -> Node | None:
        if macro is None:
            return None
        try:
            expanded: Node | None = macro(at, target, args)
        except MacroError as error:
            return self.broken(error.position, str(error))
        return expanded

    def literal(self, kind: str, text: str, at: int, *, negative: bool = False) -> Node:
        """`at` is the position of the sign, if there is one."""
        try:
            value = _value(kind, text, negative=negative)
        except lexer.InvalidLiteral as error:
            self.issues.append(Issue(at, str(error)))
            return Const(at, text) if kind in (lexer.STRING, lexer.BYTES) else Broken(at)
        return Const(at, value)

    def logical(self, function: str, terms: list[Node], positions: list[int]) -> Node:
        """Return a balanced tree over the terms; `positions` are those of the operators between the terms."""

        def balanced(low: int, high: int) -> Node:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else balanced(low, middle - 1)
            right = terms[middle + 1] if middle == high else balanced(middle + 1, high)
            return Call(positions[middle], function, [left, right])

        return balanced(0, len(positions) - 1)


def _value(kind: str, text: str, *, negative: bool) -> Any:
    """Raises InvalidLiteral."""
    if kind == lexer.STRING:
        return lexer.string_value(text)
    if kind == lexer.BYTES:
        return lexer.bytes_value(text[1:])
    if kind == lexer.NUM_INT:
        number = _integer(text)
        number = -number if negative else number
        if not -(2**63) <= number < 2**63:
            raise lexer.InvalidLiteral("invalid int literal")
        return number
    if kind == lexer.NUM_UINT:
        number = _integer(text[:-1])
        if number >= 2**64:
            raise lexer.InvalidLiteral("invalid uint literal")
        return UInt(number)
    if kind == lexer.NUM_FLOAT:
        real = float(text)
        if real == float("inf"):
            raise lexer.InvalidLiteral("invalid double literal")
        return -real if negative else real
    return {"true": True, "false": False, "null": None}[kind]


def _integer(text: str) -> int:
    if len(text) > 40 and text.lstrip("0x")[40:]:
        return 1 << 70  # out of range, whatever it is: conversion would take quadratic time
    return int(text, 16) if text.startswith("0x") else int(text)
