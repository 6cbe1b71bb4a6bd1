"""JSON bodies as sigs.k8s.io/json reads them.

`parse` costs one pass of a fast parser and the check that no key was lost. Text that is no JSON, is not UTF-8 or holds
duplicate keys is read once more, slowly and exactly.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import orjson

from pilothouse.machinery.codec.document import Literal, Pairs, plain
from pilothouse.machinery.codec.json_syntax import syntax_error
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_MOST_DUPLICATES = 100
_HUGE = 300
"""Digits; a float has at most 309 before the point."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ODD_NUMBER = re.compile(rb"[\[:,\s]-?[0-9]+(?:[.eE]|(?<=[0-9]{19}))")


class JsonError(ValueError):
    """The text is no JSON. The message is Go's."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """`duplicates` are Go's words, in the order of the text: `duplicate field "metadata.name"`."""

    value: Any
    duplicates: tuple[str, ...] = ()


def parse(data: bytes) -> Parsed:
    """Raises JsonError."""
    try:
        value = orjson.loads(data)
        # Each key has two quotes, so a lost key shows in their number, unless a string hides a quote in an escape.
        if orjson.dumps(value).count(b'"') == data.count(b'"') and b"\\u0022" not in data:
            return Parsed(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _parse_slowly(data)


def parse_untyped(data: bytes) -> Parsed:
    """As `parse`, with numbers as Go's interface{} holds them: int64 or float64, and a whole float prints whole."""
    parsed = parse(data)
    if not _ODD_NUMBER.search(data):
        return parsed
    try:
        return Parsed(_untyped(parsed.value), parsed.duplicates)
    except OverflowError:
        number = next(text for text in _spellings(parse_document(data)) if isinf(float(text)))
        raise JsonError(f"json: cannot unmarshal number {number} into Go value of type float64") from None


def parse_document(data: bytes) -> Any:
    """The text with its duplicate keys and its numbers' spelling. Raises JsonError."""
    fault = syntax_error(data)
    if fault is not None:
        raise JsonError(fault)
    text = data.decode("utf-8", "go")
    return _scrub(json.loads(text, object_pairs_hook=Pairs, parse_float=Literal.of, parse_int=_whole))


def _whole(text: str) -> int | float:
    """Python refuses to read integers of thousands of digits, and none of hundreds fits any field."""
    return int(text) if len(text) < _HUGE else Literal.of(text)


def _parse_slowly(data: bytes) -> Parsed:
    document = parse_document(data)
    return Parsed(plain(document), tuple(_duplicates(document)))


def _duplicates(document: Any) -> list[str]:
    unique = dict.fromkeys(f"duplicate field {quote(path)}" for path in _duplicate_paths(document, ""))
    return list(unique)[:_MOST_DUPLICATES]


def _duplicate_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Pairs):
        seen: set[str] = set()
        for key, member in value:
            inside = f"{path}.{key}" if path else key
            if key in seen:
                yield inside
            seen.add(key)
            yield from _duplicate_paths(member, inside)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _duplicate_paths(item, f"{path}[{at}]")


def _scrub(value: Any) -> Any:
    """Half a surrogate pair becomes U+FFFD, as in Go."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Pairs):
        return Pairs((_SURROGATE.sub("\ufffd", key), _scrub(member)) for key, member in value)
    return [_scrub(item) for item in value] if isinstance(value, list) else value


def _untyped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untyped(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_untyped(item) for item in value]
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return float(value)
    if type(value) is not float:
        return value
    # Fails for infinity, which stands for a number that no float can hold.
    whole = int(value)
    return whole if whole == value and abs(whole) < 10**18 else value


def _spellings(document: Any) -> Iterator[str]:
    if isinstance(document, Literal):
        yield document.text
    elif isinstance(document, Pairs):
        yield from _spellings([member for _, member in document])
    elif isinstance(document, list):
        for item in document:
            yield from _spellings(item)


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    """Go puts one U+FFFD for each byte that is not UTF-8; Python would put one for a whole broken sequence."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("go", _replace_each_byte)
