"""The parser: precedence climbing over a list of tokens, with few Python frames per level of nesting.

Valid expressions, and expressions whose only mistakes are outside of the grammar, are parsed here. A syntax error
ends the attempt; `recovery` then parses the expression again the way ANTLR does and reports all of its errors.
"""

from __future__ import annotations

from pilothouse.machinery.cel.front.building import BINARY, Builder, Dialect
from pilothouse.machinery.cel.front.lexer import (
    BYTES,
    EOF,
    ESC_IDENTIFIER,
    IDENTIFIER,
    NUM_FLOAT,
    NUM_INT,
    NUM_UINT,
    STRING,
    Tokens,
    tokenize,
)
from pilothouse.machinery.cel.front.source import NOWHERE, Issue
from pilothouse.machinery.cel.front.tree import Broken, Call, Const, Entry, ListNode, MapNode, Node, Select, StructNode
from pilothouse.machinery.dataclass import dataclass

LONGEST = 100_000
"""Code points of an expression."""
DEEPEST = 250
"""Nesting of one rule of the grammar."""
_LITERALS = frozenset((NUM_INT, NUM_UINT, NUM_FLOAT, STRING, BYTES, "true", "false", "null"))
_OR, _AND, _RELATION, _SUM, _PRODUCT = 1, 2, 3, 4, 5
_BINDING = {
    "||": _OR,
    "&&": _AND,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), _RELATION),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
"""How tightly operators bind."""


@dataclass(frozen=True, slots=True)
class Parsed:
    root: Node
    issues: list[Issue]
    tokens: int
    """How many: a bound for the depth of the tree."""


class _SyntaxError(Exception):
    """The tokens are no expression."""


class _TooDeep(Exception):
    """A rule of the grammar is nested more than DEEPEST times."""


def parse(text: str, dialect: Dialect) -> Parsed:
    if len(text) > LONGEST:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        return Parsed(Broken(0), [Issue(NOWHERE, message)], 0)
    tokens = tokenize(text)
    builder = Builder(dialect)
    try:
        root = _Parser(tokens, builder).whole()
        return Parsed(root, [*tokens.issues, *builder.issues], len(tokens.kinds))
    except _SyntaxError:
        pass
    except _TooDeep:
        issue = Issue(NOWHERE, f"expression recursion limit exceeded: {DEEPEST}")
        return Parsed(Broken(0), [*tokens.issues, issue], len(tokens.kinds))
    from pilothouse.machinery.cel.front.recovery import parse_with_recovery

    return Parsed(Broken(0), parse_with_recovery(text, tokens, dialect), len(tokens.kinds))


class _Parser:
    def __init__(self, tokens: Tokens, builder: Builder) -> None:
        self._kinds = tokens.kinds
        self._texts = tokens.texts
        self._positions = tokens.positions
        self._build = builder
        self._next = 0
        # Contexts that ANTLR has open for each rule; each operator of a chain keeps one open until the chain ends.
        self._expressions = 0
        self._relations = 0
        self._calculations = 0
        self._members = 0

    def whole(self) -> Node:
        root = self._expression()
        if self._kinds[self._next] != EOF:
            raise _SyntaxError
        return root

    def _expression(self) -> Node:
        self._expressions += 1
        if self._expressions > DEEPEST:
            raise _TooDeep
        node = self._operation(_OR)
        if self._kinds[self._next] == "?":
            at = self._positions[self._next]
            self._next += 1
            positive = self._operation(_OR)
            self._expect(":")
            node = Call(at, "_?_:_", [node, positive, self._expression()])
        self._expressions -= 1
        return node

    def _expect(self, kind: str) -> int:
        """Return the position of the token."""
        index = self._next
        if self._kinds[index] != kind:
            raise _SyntaxError
        self._next = index + 1
        return self._positions[index]

    def _operation(self, lowest: int) -> Node:
        """Parse operands and all operators between them that bind at least as `lowest`."""
        relations, calculations = self._relations, self._calculations
        self._relations += lowest <= _SUM
        self._calculations += 1
        node = self._operand()
        while True:
            kind = self._kinds[self._next]
            binding = _BINDING.get(kind, 0)
            if binding < lowest or not binding:
                break
            if binding <= _AND:
                self._relations, self._calculations = relations, calculations
                node = self._logical(kind, binding, node)
                continue
            index = self._next
            self._next = index + 1
            if binding == _RELATION:
                self._relations += 1
                self._calculations = calculations
            else:
                self._calculations += 1
            if max(self._relations, self._calculations) >= DEEPEST:
                raise _TooDeep
            node = Call(self._positions[index], BINARY[kind], [node, self._operation(binding + 1)])
        self._relations, self._calculations = relations, calculations
        return node

    def _logical(self, kind: str, binding: int, first: Node) -> Node:
        terms, positions = [first], []
        while self._kinds[self._next] == kind:
            positions.append(self._positions[self._next])
            self._next += 1
            terms.append(self._operation(binding + 1))
        return self._build.logical(f"_{kind}_", terms, positions)

    def _operand(self) -> Node:
        """A member with its signs."""
        index = self._next
        sign = self._kinds[index]
        if sign not in ("!", "-"):
            return self._member()
        count = 1
        while self._kinds[index + count] == sign:
            count += 1
        if sign == "-" and count == 1 and self._kinds[index + 1] in (NUM_INT, NUM_FLOAT):
            return self._member()
        self._next = index + count
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(self._positions[index], f"{sign}_", [operand])

    def _member(self) -> Node:
        outer = self._members
        self._members = outer + 1
        node = self._primary()
        while True:
            kind = self._kinds[self._next]
            if kind != "." and kind != "[":
                break
            self._members += 1
            if self._members > DEEPEST:
                raise _TooDeep
            node = self._selection(node) if kind == "." else self._index(node)
        self._members = outer
        return node

    def _selection(self, operand: Node) -> Node:
        at = self._positions[self._next]
        optional = self._kinds[self._next + 1] == "?"
        name = self._next + (2 if optional else 1)
        kind = self._kinds[name]
        if kind == ESC_IDENTIFIER:
            self._build.broken(self._positions[name], "unsupported syntax: '`'")
        elif kind != IDENTIFIER:
            raise _SyntaxError
        self._next = name + 1
        if optional:
            return Call(at, "_?._", [operand, Const(self._positions[name], self._texts[name])])
        if self._kinds[self._next] == "(" and kind == IDENTIFIER:
            at = self._positions[self._next]
            self._next += 1
            return self._build.member_call(at, self._texts[name], operand, self._arguments())
        return Select(at, operand, self._texts[name])

    def _index(self, operand: Node) -> Node:
        at = self._positions[self._next]
        self._next += 1
        function = "_[_]"
        if self._kinds[self._next] == "?":
            self._next += 1
            function = "_[?_]"
        index = self._expression()
        self._expect("]")
        return Call(at, function, [operand, index])

    def _arguments(self) -> list[Node]:
        """Parse up to and including the closing parenthesis."""
        args: list[Node] = []
        if self._kinds[self._next] == ")":
            self._next += 1
            return args
        while True:
            args.append(self._expression())
            kind = self._kinds[self._next]
            self._next += 1
            if kind == ")":
                return args
            if kind != ",":
                raise _SyntaxError

    def _primary(self) -> Node:
        index = self._next
        kind, at = self._kinds[index], self._positions[index]
        if kind == IDENTIFIER or kind == ".":
            return self._named()
        if kind in _LITERALS:
            self._next = index + 1
            return self._build.literal(kind, self._texts[index], at)
        if kind == "-" and self._kinds[index + 1] in (NUM_INT, NUM_FLOAT):
            self._next = index + 2
            return self._build.literal(self._kinds[index + 1], self._texts[index + 1], at, negative=True)
        self._next = index + 1
        if kind == "(":
            node = self._expression()
            self._expect(")")
            return node
        if kind == "[":
            return self._list(at)
        if kind == "{":
            return self._map(at)
        raise _SyntaxError

    def _named(self) -> Node:
        """A variable, a call of a function, or an object."""
        start = self._next
        leading_dot = self._kinds[start] == "."
        index = start + 1 if leading_dot else start
        if self._kinds[index] != IDENTIFIER:
            raise _SyntaxError
        begin = self._positions[start]
        end = index + 1
        if self._kinds[end] == "(":
            self._next = end + 1
            at = self._positions[end]
            args = self._arguments()
            return self._build.call(at, self._texts[index], args, start=begin, leading_dot=leading_dot)
        while self._kinds[end] == "." and self._kinds[end + 1] == IDENTIFIER:
            end += 2
        if self._kinds[end] == "{":
            self._next = end
            return self._struct("".join(self._texts[start:end]))
        self._next = index + 1
        at = self._positions[index]
        return self._build.ident(at, self._texts[index], start=begin, leading_dot=leading_dot)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: list[int] = []
        while not self._at_end("]", elements):
            if self._kinds[self._next] == "?":
                self._next += 1
                optional.append(len(elements))
            elements.append(self._expression())
        return ListNode(at, elements, frozenset(optional))

    def _at_end(self, closing: str, before: list[Node] | list[Entry]) -> bool:
        """Consume the separator or the closing bracket; a comma may precede the bracket, even in an empty literal."""
        if self._kinds[self._next] == ",":
            self._next += 1
            if self._kinds[self._next] != closing and not before:
                raise _SyntaxError
        elif before and self._kinds[self._next] != closing:
            raise _SyntaxError
        if self._kinds[self._next] == closing:
            self._next += 1
            return True
        return False

    def _map(self, at: int) -> Node:
        entries: list[Entry] = []
        while not self._at_end("}", entries):
            optional = self._kinds[self._next] == "?"
            self._next += optional
            key = self._expression()
            colon = self._expect(":")
            entries.append(Entry(colon, key, self._expression(), optional=optional))
        return MapNode(at, entries)

    def _struct(self, name: str) -> Node:
        at = self._expect("{")
        fields: list[Entry] = []
        while not self._at_end("}", fields):
            optional = self._kinds[self._next] == "?"
            index = self._next + optional
            if self._kinds[index] == ESC_IDENTIFIER:
                self._build.broken(self._positions[index], "unsupported syntax: '`'")
            elif self._kinds[index] != IDENTIFIER:
                raise _SyntaxError
            self._next = index + 1
            colon = self._expect(":")
            fields.append(Entry(colon, self._texts[index], self._expression(), optional=optional))
        return StructNode(at, name, fields)
