r"""The tokens of an expression. Time is linear in the length of the text.

A token's kind is its text for operators and keywords, and otherwise its name in cel-go's messages. A place where no
token can begin is an issue and is skipped, together with the beginning of a token that it cut off:

    'a\q' + 1    issue at 'a\q, then the tokens +, 1 and the rest of what was a string
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.cel.front.source import Issue
from pilothouse.machinery.dataclass import dataclass

IDENTIFIER: Final = "IDENTIFIER"
ESC_IDENTIFIER: Final = "ESC_IDENTIFIER"
NUM_INT: Final = "NUM_INT"
NUM_UINT: Final = "NUM_UINT"
NUM_FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"
EOF: Final = "<EOF>"
KEYWORDS: Final = frozenset(("true", "false", "null", "in"))

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_PARTIAL_ESCAPE = r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?"
_RAW = r"""[rR](?:\"\"\"(?s:.)*?\"\"\"|'''(?s:.)*?'''|"[^"\n\r]*"|'[^'\n\r]*')"""
_QUOTED = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*+"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*+'"
)
_TOKEN: Final = re.compile(
    r"(?:[\t\n\f\r ]+|//[^\n]*)*+(?:"
    rf"(?P<BYTES>[bB](?:{_RAW}|{_QUOTED}))"
    rf"|(?P<STRING>{_RAW}|{_QUOTED})"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*+)"
    r"|(?P<NUM_FLOAT>[0-9]*\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]++|[0-9]++)[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]++|[0-9]++)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./\- ]+`)"
    r"|(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
    r"|(?P<EOF>\Z))"
)
_SPACE: Final = re.compile(r"(?:[\t\n\f\r ]+|//[^\n]*)*+")
_CUT_OFF: Final = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*+(?:{_PARTIAL_ESCAPE})?'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*+(?:{_PARTIAL_ESCAPE})?"
    r"|`[A-Za-z0-9_./\- ]*|[&|=]?"
)
"""Longest beginning of a token that is none."""


@dataclass(slots=True)
class Tokens:
    """Parallel lists; the last token is EOF."""

    kinds: list[str]
    texts: list[str]
    positions: list[int]
    issues: list[Issue]
    invalid: list[tuple[int, int]]
    """Start and end of the text of each issue."""

    def text_between(self, source: str, start: int, end: int) -> str:
        """Return the source without invalid parts."""
        for first, last in reversed(self.invalid):
            if start <= first and last <= end:
                source, end = source[:first] + source[last:], end - (last - first)
        return source[start:end]


def tokenize(text: str) -> Tokens:
    kinds: list[str] = []
    texts: list[str] = []
    positions: list[int] = []
    issues: list[Issue] = []
    invalid: list[tuple[int, int]] = []
    position, match = 0, _TOKEN.match
    while True:
        found = match(text, position)
        if found is None:
            position = _skip_invalid(text, position, issues, invalid)
            continue
        kind = found.lastgroup
        assert kind is not None
        start, position = found.span(kind)
        token = text[start:position]
        if kind == "OPERATOR" or (kind == IDENTIFIER and token in KEYWORDS):
            kind = token
        elif kind == "EOF":
            kinds.append(EOF)
            texts.append(EOF)
            positions.append(start)
            return Tokens(kinds, texts, positions, issues, invalid)
        kinds.append(kind)
        texts.append(token)
        positions.append(start)


def _skip_invalid(text: str, position: int, issues: list[Issue], invalid: list[tuple[int, int]]) -> int:
    spaces = _SPACE.match(text, position)
    assert spaces is not None
    start = spaces.end()
    cut_off = _CUT_OFF.match(text, start)
    assert cut_off is not None
    end = min(max(cut_off.end(), start) + 1, len(text))
    issues.append(Issue(start, f"Syntax error: token recognition error at: '{text[start:end]}'"))
    invalid.append((start, end))
    return end


class InvalidLiteral(Exception):
    """The text of a literal that has no value."""


_SIMPLE_ESCAPES: Final = {
    **dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)),
    **{char: char for char in "\\'\"`?"},
}
_ESCAPED: Final = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\"'\\?`])|(?P<octal>[0-3][0-7][0-7])|[xX](?P<byte>[0-9a-fA-F]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)


@bounded_cache(entries=1024, key_bytes=256)
def _unquoted(token: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether its escapes count."""
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    body = token[1:] if raw else token
    width = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    inner = body[width:-width]
    return inner, not raw and "\\" in inner


def string_value(token: str) -> str:
    """Raises InvalidLiteral."""
    inner, escaped = _unquoted(token)
    return _ESCAPED.sub(_unescaped_char, inner) if escaped else inner


def _unescaped_char(found: re.Match[str]) -> str:
    if found["simple"]:
        return _SIMPLE_ESCAPES[found["simple"]]
    digits = found["byte"] or found["short"] or found["long"]
    code = int(found["octal"], 8) if found["octal"] else int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise InvalidLiteral("invalid unicode code point")
    return chr(code)


def bytes_value(token: str) -> bytes:
    """`token` is without its leading `b`. Raises InvalidLiteral."""
    inner, escaped = _unquoted(token)
    if not escaped:
        return inner.encode()
    value, position = b"", 0
    for found in _ESCAPED.finditer(inner):
        value += inner[position : found.start()].encode()
        if found["short"] or found["long"]:
            raise InvalidLiteral("unable to unescape string")
        if found["simple"]:
            value += _SIMPLE_ESCAPES[found["simple"]].encode()
        else:
            value += bytes((int(found["octal"], 8) if found["octal"] else int(found["byte"], 16),))
        position = found.end()
    return value + inner[position:].encode()
