"""Parser of label selectors, with upstream's error messages.

    selector    = requirement { "," requirement }
    requirement = [ "!" ] KEY | KEY ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"
                | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ]

One regular expression reads a whole requirement. Only a text with an error is read token by token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import TypeVar

from pilothouse.machinery import field
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.selectors.requirement import (
    InvalidSelector,
    Operator,
    Requirement,
    key_error,
    new_requirement,
)

# A NUL byte ends a token. At the start of a token, a NUL byte ends the text.
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<>\x20\t\r\n\0]+)\0?")
_SPECIAL = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""

_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_OPERATOR_NAMES = ", ".join(operator.value for operator in _OPERATORS.values())


_GAP = r"\0?+[ \t\r\n]*+"
_IDENTIFIER = r"[^=!(),<>\x20\t\r\n\0]++"
_REQUIREMENT = re.compile(
    rf"[ \t\r\n]*+(?:!{_GAP}(?P<absent>{_IDENTIFIER}){_GAP}|(?P<key>{_IDENTIFIER}){_GAP}"
    rf"(?:(?P<set>in|notin){_GAP}\({_GAP}(?P<values>[^=!()<>]*+)\){_GAP}"
    rf"|(?P<sign>==|!=|[=<>]){_GAP}(?:(?P<value>{_IDENTIFIER}){_GAP})?+)?+)"
    r"(?:(?P<comma>,)\0?+|(?=\0|\Z))"
)
"""A requirement and the following comma, unless the text ends."""
_BLANK = re.compile(r"[ \t\r\n\0]")
_END_BETWEEN_PARENTHESES = re.compile(r"(?:\A|[ \t\r\n\0])\0")


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Parse the text. Raises InvalidSelector."""
    requirements: list[Requirement] = []
    position, after_comma = 0, False
    while (match := _REQUIREMENT.match(text, position)) and (requirement := _requirement(match)):
        requirements.append(requirement)
        if match["comma"] is None:
            return tuple(requirements)
        position, after_comma = match.end(), True
    requirements += _Parser(text, position).requirements(after_comma=after_comma)
    return tuple(requirements)


def _requirement(match: re.Match[str]) -> Requirement | None:
    """Return the requirement, or None if it is invalid."""
    checkpoint()
    absent, key, among, between, sign, value, _ = match.groups()
    try:
        if absent is not None:
            return new_requirement(absent, Operator.DOES_NOT_EXIST)
        if sign is not None:
            return new_requirement(key, _OPERATORS[sign], (value or "",))
        if among is None:
            return new_requirement(key, Operator.EXISTS)
        values = _between_commas(between)
        return None if values is None else new_requirement(key, _OPERATORS[among], values)
    except InvalidSelector:
        return None


def _between_commas(text: str) -> list[str] | None:
    """Return the values, or None unless at most one identifier stands between two commas."""
    values = text.split(",")
    if _BLANK.search(text):
        if _END_BETWEEN_PARENTHESES.search(text):
            return None
        values = [value.strip(" \t\r\n\0") for value in values]
        if any(map(_BLANK.search, values)):
            return None
    return sorted_in_pieces(list(dict.fromkeys(values)), key=str) if len(values) > 1 else values


def _tokens(text: str, position: int) -> Iterator[str]:
    while match := _TOKEN.match(text, position):
        yield match[1]
        position = match.end()
    yield _END


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SPECIAL


class _Parser:
    """Recursive descent parser over lazily read tokens; `_next` never moves beyond the end."""

    def __init__(self, text: str, position: int) -> None:
        self._tokens = _tokens(text, position)
        self._token = next(self._tokens)

    def requirements(self, *, after_comma: bool) -> Iterator[Requirement]:
        if after_comma:
            self._require_one()
        while (token := self._peek()) != _END:
            if not _is_identifier(token) and token != "!":
                raise InvalidSelector(f"found '{token}', expected: !, identifier, or 'end of string'")
            yield self._requirement()
            self._separator()

    def _separator(self) -> None:
        token = self._next()
        if token not in (_END, ","):
            raise InvalidSelector(f"found '{token}', expected: ',' or 'end of string'")
        if token == ",":
            self._require_one()

    def _require_one(self) -> None:
        following = self._peek()
        if not _is_identifier(following) and following != "!":
            raise InvalidSelector(f"found '{following}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        try:
            absent = self._peek() == "!"
            key = self._key_after(absent)
            if absent or self._peek() in (_END, ","):
                return new_requirement(key, Operator.DOES_NOT_EXIST if absent else Operator.EXISTS)
            token = self._next()
            if token not in _OPERATORS:
                raise InvalidSelector(f"found '{token}', expected: {_OPERATOR_NAMES}")
            operator = _OPERATORS[token]
            values = self._values() if operator in (Operator.IN, Operator.NOT_IN) else {self._exact_value()}
            return new_requirement(key, operator, sorted(values))
        except InvalidSelector as error:
            raise InvalidSelector(f"unable to parse requirement: {error}") from None

    def _key_after(self, exclamation_mark: bool) -> str:
        if exclamation_mark:
            self._next()
        key = self._next()
        if not _is_identifier(key):
            raise InvalidSelector(f"found '{key}', expected: identifier")
        for error in key_error(key, field.root()):
            raise InvalidSelector(str(error))
        return key

    def _exact_value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        token = self._next()
        if not _is_identifier(token):
            raise InvalidSelector(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> set[str]:
        if (token := self._next()) != "(":
            raise InvalidSelector(f"found '{token}' expected: '('")
        token = self._peek()
        if token == ")":
            self._next()
            return {""}
        if token != "," and not _is_identifier(token):
            raise InvalidSelector(f"found '{token}', expected: ',', ')' or identifier")
        return self._value_list()

    def _value_list(self) -> set[str]:
        """Return the values up to and including the closing parenthesis; two adjacent commas enclose an empty value."""
        values: set[str] = set()
        while True:
            token, following = self._next(), self._peek()
            if _is_identifier(token):
                values.add(token)
                if following not in (",", ")"):
                    raise InvalidSelector(f"found '{following}', expected: ',' or ')'")
            elif token == ",":
                if not values or following in (",", ")"):
                    values.add("")
            else:
                raise InvalidSelector(f"found '{token}', expected: ',', or identifier")
            if following == ")":
                self._next()
                return values

    def _peek(self) -> str:
        return self._token

    def _next(self) -> str:
        token = self._token
        self._token = next(self._tokens, _END)
        return token


T = TypeVar("T")

_PIECE = 10_000
"""Items per piece; sorting this many strings takes a few milliseconds."""


def sorted_in_pieces(items: Sequence[T], key: Callable[[T], str]) -> list[T]:
    """Sort stably in short steps, so that other threads can run while a long list from a client is sorted."""
    if len(items) <= _PIECE:
        return sorted(items, key=key)
    pieces = (sorted(items[start : start + _PIECE], key=key) for start in range(0, len(items), _PIECE))
    parsed: list[T] = []
    for item in merge(*pieces, key=key):
        checkpoint()
        parsed.append(item)
    return parsed
