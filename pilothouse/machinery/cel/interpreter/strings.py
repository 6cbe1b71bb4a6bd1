"""CEL's functions of strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery import gofmt
from pilothouse.machinery.cel.interpreter.conversions import text_of
from pilothouse.machinery.cel.interpreter.dispatch import Overload
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.formatting import format_string
from pilothouse.machinery.cel.patterns import matcher

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES = str.maketrans(gofmt.ESCAPES)


def string_functions() -> Iterator[Overload]:
    yield Overload("contains", (str, str), lambda text, part: part in text)
    yield Overload("startsWith", (str, str), str.startswith)
    yield Overload("endsWith", (str, str), str.endswith)
    yield Overload("matches", (str, str), lambda text, pattern: bool(matcher(pattern)(text)))
    yield Overload("charAt", (str, int), _char_at)
    yield Overload("indexOf", (str, str), str.find)
    yield Overload("indexOf", (str, str, int), _index_of)
    yield Overload("lastIndexOf", (str, str), str.rfind)
    yield Overload("lastIndexOf", (str, str, int), _last_index_of)
    yield Overload("lowerAscii", (str,), lambda text: text.translate(_LOWER))
    yield Overload("upperAscii", (str,), lambda text: text.translate(_UPPER))
    yield Overload("replace", (str, str, str), str.replace)
    yield Overload("replace", (str, str, str, int), str.replace)
    yield Overload("split", (str, str), _split)
    yield Overload("split", (str, str, int), _split)
    yield Overload("substring", (str, int), lambda text, start: _substring(text, start, len(text)))
    yield Overload("substring", (str, int, int), _substring)
    yield Overload("trim", (str,), lambda text: text.strip(_SPACE))
    yield Overload("join", (list,), _join)
    yield Overload("join", (list, str), _join)
    yield Overload("format", (str, list), format_string)
    yield Overload("strings.quote", (str,), lambda text: f'"{text.translate(_ESCAPES)}"')


def _out_of_range(index: int) -> EvaluationFailed:
    return EvaluationFailed(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    return min(offset, len(text)) if part == "" else text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if part == "":
        return min(offset, len(text))
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _substring(text: str, start: int, end: int) -> str:
    if not 0 <= start <= len(text) and start > end:
        raise _out_of_range(start) if end == len(text) else _wrong_range(start, end)
    if start > end:
        raise _wrong_range(start, end)
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _wrong_range(start: int, end: int) -> EvaluationFailed:
    return EvaluationFailed(f"invalid substring range. start: {start}, end: {end}")


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvaluationFailed(f"join: invalid input: {text_of(item)}")
    return separator.join(items)
