"""Go's messages for invalid JSON: `invalid character 'n' looking for beginning of object key string`.

The states are encoding/json's. A fast parser finds the index of the error. Only the value before that index is scanned
byte by byte; the text before is valid, so its brackets determine the scanner's state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum, auto

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.gofmt import quote

MAX_DEPTH = 254
"""Nesting limit. Go decodes 10,000 levels, but the store and responses must also encode the value."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'[\[{](?:[^"\[\]{}]++|%b)*+[\]}]' % _STRING
"""An object or list without nested containers."""
_TO_BRACKET = rb'(?:[^"\[\]{}]++|%b)*+([\[\]{}])' % _STRING
_BRACKET = re.compile(_TO_BRACKET, re.DOTALL)
_OUTER_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|%b|%b){0,999}+%b' % (_STRING, _FLAT, _TO_BRACKET), re.DOTALL)
_COMMAS = re.compile(rb'(?:(?:[^",\[\]{}]++|%b|%b)*+,){1,999}+' % (_STRING, _FLAT), re.DOTALL)
_TO_FLAT_END = re.compile(rb'(?:[^",\[\]{}]++|%b)*+%b' % (_STRING, _FLAT), re.DOTALL)
"""These four patterns expect valid text. Their repetitions are bounded where possible, because a match is
uninterruptible."""
_SKELETON = bytes(ord("?") if byte >= 0x80 or byte in b"NI" else byte for byte in range(256))
"""Replaces bytes that are valid only inside strings, so that the fast parser stops at the same index: non-ASCII bytes,
and the initials of NaN and Infinity, which Python accepts as numbers."""


def _number(text: str) -> None:
    """Ignore a number. Unlike a built-in, a Python callback lets other threads run during a long list."""
    checkpoint()


_LOCATOR = json.JSONDecoder(parse_int=_number, parse_float=_number)
_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING_PART = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_HEX = re.compile(rb"[0-9a-fA-F]{0,4}")
_DIGITS = re.compile(rb"[0-9]+")
_WHOLE = re.compile(rb"0|[1-9][0-9]*")
_LITERALS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}
_NUMBER_STARTS = frozenset(b"-0123456789")
_CLOSE = {ord("{"): ord("}"), ord("["): ord("]")}


class SyntaxFault(Exception):
    """A syntax error; the message is Go's."""


def syntax_error(data: bytes) -> str | None:
    """Return Go's message for invalid text; None for valid JSON."""
    return _fault(data, _Scanner(data))


def interpretation_error(data: bytes) -> str | None:
    """Like `syntax_error`, with the messages of encoding/json, which reads the kind of a body before other decoders."""
    return _fault(data, _RuneScanner(data))


def _fault(data: bytes, scanner: _Scanner) -> str | None:
    end = _end_of_the_right_part(data)
    try:
        scanner.pass_over(len(data) if end is None else end)
        if end is not None:
            scanner.run()
    except SyntaxFault as fault:
        return str(fault)
    return None


def _end_of_the_right_part(data: bytes) -> int | None:
    """Return the index at which the text stops being a prefix of JSON; None for valid JSON and for text that is too
    deep before that index."""
    try:
        _LOCATOR.decode(data.translate(_SKELETON).decode("ascii"))
    except json.JSONDecodeError as error:
        return error.pos
    except RecursionError:
        pass
    return None


class _State(Enum):
    VALUE = auto()
    FIRST_ITEM = auto()
    FIRST_KEY = auto()
    KEY = auto()
    AFTER_VALUE = auto()


class _Scanner:
    """Scanner at index `_at`; `_state` is the expected token, `_open` are the enclosing brackets."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._open: list[int] = []
        self._state = _State.VALUE
        self._steps: dict[_State, Callable[[int], _State]] = {
            _State.VALUE: self._value,
            _State.FIRST_ITEM: self._first_item,
            _State.FIRST_KEY: self._first_key,
            _State.KEY: self._key,
            _State.AFTER_VALUE: self._after_value,
        }

    def pass_over(self, end: int) -> None:
        """Skip to the last value before `end`. The skipped text is valid except for its depth."""
        while match := self._next_bracket(end):
            checkpoint()
            self._at = match.start(1)
            byte = self._data[self._at]
            self._state = self._begin(byte) if byte in _CLOSE else self._end()
        while match := _COMMAS.match(self._data, self._at, end):
            checkpoint()
            self._at = match.end()
            self._state = _State.KEY if self._open[-1] == ord("{") else _State.VALUE
        if match := _TO_FLAT_END.match(self._data, self._at, end):
            self._at, self._state = match.end(), _State.AFTER_VALUE

    def _next_bracket(self, end: int) -> re.Match[bytes] | None:
        """Return the next bracket. Flat values are skipped, except near the depth limit."""
        pattern = _OUTER_BRACKET if len(self._open) < MAX_DEPTH else _BRACKET
        return pattern.match(self._data, self._at, end)

    def run(self) -> None:
        state = self._state
        while state is not _State.AFTER_VALUE or self._open:
            state = self._steps[state](self._next_byte())
        self._skip(_SPACE)
        if self._at < len(self._data):
            raise self._invalid("after top-level value")

    def _value(self, byte: int) -> _State:
        if byte in _CLOSE:
            return self._begin(byte)
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte in _NUMBER_STARTS:
            self._number()
        else:
            raise self._invalid("looking for beginning of value")
        return _State.AFTER_VALUE

    def _begin(self, byte: int) -> _State:
        self._open.append(byte)
        if len(self._open) > MAX_DEPTH:
            raise self._invalid("exceeded max depth")
        self._at += 1
        return _State.FIRST_KEY if byte == ord("{") else _State.FIRST_ITEM

    def _first_item(self, byte: int) -> _State:
        return self._end() if byte == ord("]") else self._value(byte)

    def _first_key(self, byte: int) -> _State:
        return self._end() if byte == ord("}") else self._key(byte)

    def _key(self, byte: int) -> _State:
        if byte != ord('"'):
            raise self._invalid("looking for beginning of object key string")
        self._string()
        if self._next_byte() != ord(":"):
            raise self._invalid("after object key")
        self._at += 1
        return _State.VALUE

    def _after_value(self, byte: int) -> _State:
        in_object = self._open[-1] == ord("{")
        if byte == _CLOSE[self._open[-1]]:
            return self._end()
        if byte != ord(","):
            raise self._invalid("after object key:value pair" if in_object else "after array element")
        self._at += 1
        return _State.KEY if in_object else _State.VALUE

    def _end(self) -> _State:
        self._at += 1
        self._open.pop()
        return _State.AFTER_VALUE

    def _string(self) -> None:
        self._at += 1
        self._skip(_STRING_PART)
        if self._data[self._at : self._at + 1] == b'"':
            self._at += 1
        elif self._data[self._at : self._at + 1] == b"\\":
            self._bad_escape()
        elif self._at == len(self._data):
            raise SyntaxFault("unexpected end of JSON input")
        else:
            raise self._invalid("in string literal")

    def _bad_escape(self) -> None:
        self._at += 1
        if self._data[self._at : self._at + 1] != b"u":
            raise self._invalid("in string escape code")
        self._at += 1
        self._skip(_HEX)
        raise self._invalid("in \\u hexadecimal character escape")

    def _literal(self, word: str) -> None:
        for letter in word:
            if self._data[self._at : self._at + 1] != letter.encode():
                raise self._invalid(f"in literal {word} (expecting '{letter}')")
            self._at += 1

    def _number(self) -> None:
        if self._data[self._at : self._at + 1] == b"-":
            self._at += 1
        self._want(_WHOLE, "in numeric literal")
        if self._data[self._at : self._at + 1] == b".":
            self._at += 1
            self._want(_DIGITS, "after decimal point in numeric literal")
        if self._data[self._at : self._at + 1] in (b"e", b"E"):
            self._at += 1
            if self._data[self._at : self._at + 1] in (b"+", b"-"):
                self._at += 1
            self._want(_DIGITS, "in exponent of numeric literal")

    def _want(self, pattern: re.Pattern[bytes], context: str) -> None:
        if not pattern.match(self._data, self._at):
            raise self._invalid(context)
        self._skip(pattern)

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self._data, self._at)
        self._at = match.end() if match else self._at

    def _next_byte(self) -> int:
        self._skip(_SPACE)
        if self._at == len(self._data):
            raise SyntaxFault("unexpected end of JSON input")
        return self._data[self._at]

    def _invalid(self, context: str) -> SyntaxFault:
        """At the end of the text Go tries a space, so the message names a space."""
        char = chr(self._data[self._at]) if self._at < len(self._data) else " "
        quoted = {"'": "\\'", '"': '"'}.get(char) or quote(char)[1:-1]
        return SyntaxFault(f"invalid character '{quoted}' {context}")


class _RuneScanner(_Scanner):
    """Names characters instead of bytes, and handles an escape as a unit."""

    def _bad_escape(self) -> None:
        length = 6 if self._data[self._at + 1 : self._at + 2] == b"u" else 2
        escape = self._data[self._at : self._at + length].decode("utf-8", "replace")
        if len(escape) < length:
            raise SyntaxFault("unexpected end of JSON input")
        quoted = f"`{escape}`" if escape.isprintable() and "`" not in escape else quote(escape)
        raise SyntaxFault(f"invalid escape sequence {quoted} in string")

    def _invalid(self, context: str) -> SyntaxFault:
        if self._at == len(self._data):
            return SyntaxFault("unexpected end of JSON input")
        place = "in string" if context == "in string literal" else context
        return SyntaxFault(f"invalid character '{self._character()}' {place}")

    def _character(self) -> str:
        try:
            char = self._data[self._at : self._at + _longest_character(self._data[self._at])].decode()
        except UnicodeDecodeError:
            return f"\\x{self._data[self._at]:02x}"
        return {"'": "\\'", '"': '"'}.get(char) or quote(char)[1:-1]


def _longest_character(first: int) -> int:
    """Return the length of a UTF-8 character by its first byte."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
