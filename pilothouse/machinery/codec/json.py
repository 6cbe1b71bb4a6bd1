"""JSON bodies as sigs.k8s.io/json reads them.

`parse` costs one pass of a fast parser and the check that no key was lost. Text that is no JSON, is not UTF-8 or holds
duplicate keys is read once more, exactly; what is wrong is looked for only where that reader stopped.
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
"""Digits; a float has at most 309 before the point."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_ODD_NUMBER = re.compile(rb"[\[:,\s]-?[0-9]+(?:[.eE]|(?<=[0-9]{19}))")
_STRIDE, _OVERLAP = 1 << 17, 1 << 5


class JsonError(ValueError):
    """The text is no JSON. The message is Go's."""


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """`duplicates` are Go's words, in the order of the text: `duplicate field "metadata.name"`."""

    value: Any
    duplicates: tuple[str, ...] = ()
    document: Any = None
    """The document as `parse_document` returns it, if the text had to be read that closely."""
    spelled: bool = False
    """Whether numbers in the value may be Literals."""


def parse(data: bytes) -> ParsedJson:
    """Raises JsonError."""
    try:
        value = orjson.loads(data)
        # Each key has two quotes, so a lost key shows in their number, unless a string hides a quote in an escape.
        if orjson.dumps(value).count(b'"') == data.count(b'"') and b"\\u0022" not in data:
            return ParsedJson(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        document = parse_document(data)
        return ParsedJson(plain(document), _duplicates(document), document)
    document = parse_document(data)
    return ParsedJson(value, _duplicates(document), document)


def parse_printed(data: bytes) -> ParsedJson:
    """As `parse_untyped`, with numbers as Go prints what it has read: `1.0` is 1."""
    parsed = parse_untyped(data)
    return ParsedJson(printed_numbers(parsed.value), parsed.duplicates) if _has_odd_number(data) else parsed


def parse_untyped(data: bytes) -> ParsedJson:
    """As `parse`, with numbers as Go's interface{} holds them: int64, or float64 if they were not written as one."""
    parsed = parse(data)
    if not _has_odd_number(data):
        return parsed
    try:
        return ParsedJson(untyped(parsed.value), parsed.duplicates)
    except OverflowError:
        number = next(text for text in _spellings(parse_document(data)) if isinf(float(text)))
        raise JsonError(f"json: cannot unmarshal number {number} into Go value of type float64") from None


def parse_spelled(data: bytes) -> ParsedJson:
    """As `parse`, with a Literal for each number that Go would print otherwise than it was written."""
    if not _has_odd_number(data):
        return parse(data)
    parsed = parse_untyped(data)
    return ParsedJson(as_go_copies(parse_document(data)), parsed.duplicates, spelled=True)


def dump_spelled(value: Any, *, sort_keys: bool = False) -> bytes:
    """Return what `parse_spelled` read as JSON, each number as it was written."""
    return orjson.dumps(value, default=_spelled, option=orjson.OPT_SORT_KEYS if sort_keys else None)


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted keys: equal values have equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _spelled(number: Literal) -> orjson.Fragment:
    return orjson.Fragment(number.text)


def parse_document(data: bytes) -> Any:
    """The text with its numbers' spelling, and with Pairs for objects that have a key twice. Raises JsonError."""
    text = _mended(data)
    try:
        document = (_EXACT if len(text) <= _SHORT else _IN_TURNS).decode(text)
    except (ValueError, RecursionError):
        _refuse_syntax(data)
        # It is JSON, so what the library did not like is an integer of thousands of digits.
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
    """Python refuses to read integers of thousands of digits, and none of hundreds fits any field."""
    checkpoint()
    return int(text) if len(text) < _HUGE else Literal.of(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


_EXACT = json.JSONDecoder(object_pairs_hook=_members, parse_float=Literal.of, parse_constant=_refuse_constant)
_IN_TURNS = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=Literal.of, parse_int=_whole, parse_constant=_refuse_constant
)
"""Reads numbers by a function of ours: a long list of them would else be one call that no thread can interrupt."""


def _mended(data: bytes) -> str:
    """Half a surrogate pair becomes U+FFFD, and so does each byte that is not UTF-8, as in Go."""
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
    """Outer before inner, as far as there is room. Only what may hold objects is gone into."""
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
    """Looked for piece by piece, because a search can not be interrupted. A match is shorter than the overlap."""
    return any(_ODD_NUMBER.search(data, at, at + _STRIDE + _OVERLAP) for at in range(0, len(data), _STRIDE))


def untyped(value: Any) -> Any:
    """The value with numbers as Go's interface{} holds them. Raises OverflowError for a number that no float holds."""
    if type(value) is dict:
        return {key: untyped(member) if type(member) in _NOT_AS_IT_IS else member for key, member in value.items()}
    if type(value) is list:
        return [untyped(item) if type(item) in _NOT_AS_IT_IS else item for item in value]
    if type(value) is int:
        return value if -(1 << 63) <= value < 1 << 63 else float(value)
    if not isinstance(value, float):
        return value
    if isinf(value):  # which stands for a number that no float can hold
        raise OverflowError
    return float(value)


def printed_numbers(value: Any) -> Any:
    """The value with numbers as Go prints them: a whole float has no point, nor an exponent if it fits 64 bits."""
    if type(value) is dict:
        return {key: printed_numbers(member) for key, member in value.items()}
    if type(value) is list:
        return list(map(printed_numbers, value))
    return int(value) if type(value) is float and -(2.0**63) <= value < 2.0**64 and value.is_integer() else value


_NOT_AS_IT_IS = frozenset({dict, list, int, float, Literal})


def _spellings(document: Any) -> Iterator[str]:
    """Return the spellings of all numbers that are no plain integers."""
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
    """Go puts one U+FFFD for each byte that is not UTF-8; Python would put one for a whole broken sequence."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("go", _replace_each_byte)
