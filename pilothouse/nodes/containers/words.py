"""Lexer of shell command lines: quotes, escapes, variables, operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass

Lookup: TypeAlias = Callable[[str], str]
"""Returns the value of a variable; empty if unset."""

_SIGNS: Final = re.compile(r"&&|\|\||>>|2>&1|1?>&2|2>|1>|[;|<>&\n]")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+)|([?$#]))")
_BLANK: Final = " \t\r"
_PLAIN: Final = re.compile(r"""[^ \t\r\n'"\\$;|<>&]+""")
_PLAIN_IN_QUOTES: Final = re.compile(r"""[^"\\$]+""")
_TURN: Final = 1024
"""Characters after which the lexer yields to other tasks."""


class BadSyntax(Exception):
    """The command line has a syntax error."""


class NotSupported(Exception):
    """A shell feature that is not supported."""


@dataclass(frozen=True, slots=True)
class Sign:
    text: str


def words(line: str, lookup: Lookup) -> Iterator[str | Sign | None]:
    """Yield words and operators; variables are expanded at the time of the yield.

    None is yielded between parts of long lines. Raises BadSyntax, NotSupported, and the errors of `lookup`.
    """
    return _Scanner(line, lookup).run()


class _Scanner:
    def __init__(self, line: str, lookup: Lookup) -> None:
        self._line, self._lookup = line, lookup
        self._at = 0
        self._word: list[str] | None = None  # parts of the current word

    def run(self) -> Iterator[str | Sign | None]:
        turn = _TURN
        while self._at < len(self._line):
            if self._at >= turn:
                turn = self._at + _TURN
                yield None
            char = self._line[self._at]
            if char in _BLANK:
                self._at += 1
                yield from self._finished()
            elif char == "#" and self._word is None:
                end = self._line.find("\n", self._at)
                self._at = len(self._line) if end < 0 else end
            elif (sign := _SIGNS.match(self._line, self._at)) and not self._is_inside(sign[0]):
                yield from self._finished()
                self._at = sign.end()
                yield Sign(sign[0])
            else:
                self._part(char)
        yield from self._finished()

    def _is_inside(self, sign: str) -> bool:
        """Return whether the digit of an operator such as 2> ends a word, as in x2>y."""
        return sign[0].isdigit() and self._word is not None

    def _finished(self) -> Iterator[str]:
        if self._word is not None:
            yield "".join(self._word)
            self._word = None

    def _part(self, char: str) -> None:
        self._word = self._word if self._word is not None else []
        if char == "'":
            self._word.append(self._until("'"))
        elif char == '"':
            self._quoted()
        elif char == "\\":
            self._word.append(self._line[self._at + 1 : self._at + 2].replace("\n", ""))
            self._at += 2
        elif char == "$":
            self._word.append(self._variable())
        else:
            match = _PLAIN.match(self._line, self._at)
            text = char if match is None else match[0]
            self._word.append(text)
            self._at += len(text)

    def _until(self, quote: str) -> str:
        end = self._line.find(quote, self._at + 1)
        if end < 0:
            raise BadSyntax("unterminated quoted string")
        text, self._at = self._line[self._at + 1 : end], end + 1
        return text

    def _quoted(self) -> None:
        assert self._word is not None
        self._at += 1
        while self._at < len(self._line) and (char := self._line[self._at]) != '"':
            if char == "$":
                self._word.append(self._variable())
            elif char == "\\" and self._line[self._at + 1 : self._at + 2] in tuple('"\\$`'):
                self._word.append(self._line[self._at + 1])
                self._at += 2
            else:
                match = _PLAIN_IN_QUOTES.match(self._line, self._at)
                text = char if match is None else match[0]
                self._word.append(text)
                self._at += len(text)
        if self._at >= len(self._line):
            raise BadSyntax("unterminated quoted string")
        self._at += 1

    def _variable(self) -> str:
        match = _VARIABLE.match(self._line, self._at)
        if match is None and self._line.startswith("(", self._at + 1):
            raise NotSupported("command substitution")
        if match is None:
            self._at += 1
            return "$"
        self._at = match.end()
        return self._lookup(match[1] or match[2] or match[3])
