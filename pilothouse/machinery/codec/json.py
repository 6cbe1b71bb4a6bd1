"""JSON bodies with the semantics of sigs.k8s.io/json.

`parse` costs one pass of a fast parser and a check for lost keys. Invalid JSON, invalid UTF-8 and text with duplicate
keys are parsed again, exactly; the error is located from the index at which the exact parser stopped.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from math import isinf
from typing import Any, NoReturn

import orjson

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.body_errors import DocumentPlace, StrictFailures
from pilothouse.machinery.codec.document import (
    CONTAINERS,
    Literal,
    Pairs,
    as_go_copies,
    is_too_deep,
    members,
    numbered,
    plain,
)
from pilothouse.machinery.codec.json_syntax import MAX_DEPTH, syntax_error
from pilothouse.machinery.dataclass import dataclass

_SHORT = 64 * 1024
_HUGE = 300
"""Digits; a float has at most 309 integer digits."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_ODD_NUMBER = re.compile(rb"[\[:,\s]-?[0-9]+(?:[.eE]|(?<=[0-9]{19}))")
_STRIDE, _OVERLAP = 1 << 17, 1 << 5


class JsonError(ValueError):
    """Invalid JSON; the message is Go's."""


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """duplicates: Go's messages, in the order of the text: `duplicate field "metadata.name"`."""

    value: Any
    duplicates: tuple[str, ...] = ()
    document: Any = None
    """Result of `parse_document`, if the exact parser ran."""
    spelled: bool = False
    """Whether numbers in the value may be Literals."""


def parse(data: bytes) -> ParsedJson:
    """Parse a body. Raises JsonError."""
    try:
        value = orjson.loads(data)
        # Each key has two quotes, so their count reveals a lost key, unless a string contains an escaped quote.
        if orjson.dumps(value).count(b'"') == data.count(b'"') and b"\\u0022" not in data:
            return ParsedJson(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        document = parse_document(data)
        return ParsedJson(plain(document), _duplicates(document), document)
    document = parse_document(data)
    return ParsedJson(value, _duplicates(document), document)


def parse_printed(data: bytes) -> ParsedJson:
    """Like `parse_untyped`, with numbers as Go prints them: `1.0` becomes 1."""
    parsed = parse_untyped(data)
    return ParsedJson(printed_numbers(parsed.value), parsed.duplicates) if _has_odd_number(data) else parsed


def parse_untyped(data: bytes) -> ParsedJson:
    """Like `parse`, with numbers as in Go's interface{}: int64, or float64 for any other notation."""
    parsed = parse(data)
    if not _has_odd_number(data):
        return parsed
    try:
        return ParsedJson(untyped(parsed.value), parsed.duplicates)
    except OverflowError:
        number = next(text for text in _spellings(parse_document(data)) if isinf(float(text)))
        raise JsonError(f"json: cannot unmarshal number {number} into Go value of type float64") from None


def parse_spelled(data: bytes) -> ParsedJson:
    """Like `parse`, with a Literal for each number whose notation differs from Go's output."""
    if not _has_odd_number(data):
        return parse(data)
    parsed = parse_untyped(data)
    return ParsedJson(as_go_copies(parse_document(data)), parsed.duplicates, spelled=True)


def dump_spelled(value: Any, *, sort_keys: bool = False) -> bytes:
    """Encode a value from `parse_spelled`; numbers keep their notation."""
    return orjson.dumps(value, default=_spelled, option=orjson.OPT_SORT_KEYS if sort_keys else None)


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted keys: equal values have equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _spelled(number: Literal) -> orjson.Fragment:
    return orjson.Fragment(number.text)


def parse_document(data: bytes) -> Any:
    """Parse exactly: numbers keep their notation, objects with duplicate keys become Pairs. Raises JsonError."""
    text = _mended(data)
    try:
        document = (_EXACT if len(text) <= _SHORT else _IN_TURNS).decode(text)
    except (ValueError, RecursionError):
        _refuse_syntax(data)
        # The text is valid JSON, so the library failed on an integer of thousands of digits.
        document = _IN_TURNS.decode(text)
    if is_too_deep(document, MAX_DEPTH):
        _refuse_syntax(data)
    return document


def _refuse_syntax(data: bytes) -> None:
    fault = syntax_error(data)
    if fault is not None:
        raise JsonError(fault)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Pairs:
    checkpoint()
    plain_members = dict(pairs)
    return plain_members if len(plain_members) == len(pairs) else Pairs(pairs)


def _whole(text: str) -> int | float:
    """Parse an integer. Python rejects thousands of digits, and integers of hundreds of digits fit no field."""
    checkpoint()
    return int(text) if len(text) < _HUGE else Literal.of(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


_EXACT = json.JSONDecoder(object_pairs_hook=_members, parse_float=Literal.of, parse_constant=_refuse_constant)
_IN_TURNS = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=Literal.of, parse_int=_whole, parse_constant=_refuse_constant
)
"""Parses numbers with Python callbacks: a long list of numbers would otherwise be one uninterruptible call."""


def _mended(data: bytes) -> str:
    """Replace lone surrogates and invalid UTF-8 bytes by U+FFFD, as Go does."""
    text = data.decode("utf-8", "go")
    if _ESCAPED_SURROGATE.search(text):
        return _ESCAPE.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)
    return text


def _duplicates(document: Any) -> tuple[str, ...]:
    failures = StrictFailures()
    if type(document) in CONTAINERS:
        _note_duplicates(document, DocumentPlace(), failures)
    return tuple(failures)


def _note_duplicates(value: Any, place: DocumentPlace, failures: StrictFailures) -> None:
    """Record duplicates, outer before inner, up to the limit. Only containers are visited."""
    if failures.full:
        return
    if type(value) is list:
        for at, item in enumerate(value):
            if type(item) in CONTAINERS:
                _note_duplicates(item, DocumentPlace(place, at), failures)
        return
    for key, member, is_second in numbered(value):
        if is_second:
            failures.note("duplicate", DocumentPlace(place, key))
        if type(member) in CONTAINERS:
            _note_duplicates(member, DocumentPlace(place, key), failures)


def _has_odd_number(data: bytes) -> bool:
    """Search in chunks, because a single search is uninterruptible. A match is shorter than the overlap."""
    return any(_ODD_NUMBER.search(data, at, at + _STRIDE + _OVERLAP) for at in range(0, len(data), _STRIDE))


def untyped(value: Any) -> Any:
    """Return the value with numbers as in Go's interface{}. Raises OverflowError for numbers out of float range."""
    if type(value) is dict:
        return {key: untyped(member) if type(member) in _NOT_AS_IT_IS else member for key, member in value.items()}
    if type(value) is list:
        return [untyped(item) if type(item) in _NOT_AS_IT_IS else item for item in value]
    if type(value) is int:
        return value if -(1 << 63) <= value < 1 << 63 else float(value)
    if not isinstance(value, float):
        return value
    if isinf(value):  # a number out of float range
        raise OverflowError
    return float(value)


def printed_numbers(value: Any) -> Any:
    """Return the value with numbers as Go prints them: whole floats without a point, and within 64 bits without an
    exponent."""
    if type(value) is dict:
        return {key: printed_numbers(member) for key, member in value.items()}
    if type(value) is list:
        return list(map(printed_numbers, value))
    return int(value) if type(value) is float and -(2.0**63) <= value < 2.0**64 and value.is_integer() else value


_NOT_AS_IT_IS = frozenset({dict, list, int, float, Literal})


def _spellings(document: Any) -> Iterator[str]:
    """Yield the notation of all numbers other than plain integers."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Literal):
            yield value.text
        elif type(value) is list:
            waiting.extend(reversed(value))
        elif type(value) in CONTAINERS:
            waiting.extend(reversed([member for _, member in members(value)]))


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    """Replace every invalid byte by U+FFFD, as Go does; Python replaces a whole broken sequence by one."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("go", _replace_each_byte)
