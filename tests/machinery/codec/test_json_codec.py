"""JSON text: values, duplicate keys, numbers and broken Unicode as Go has them, and Go's words for bad text."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.codec.json import JsonError, parse, parse_document, parse_printed, parse_untyped
from pilothouse.machinery.codec.json_syntax import SyntaxFault, _Scanner, interpretation_error, syntax_error
from pilothouse.machinery.gofmt import quote

TEXTS = st.text(st.sampled_from('ab"\\u0022\n\u00e9\U0001f600{}:,[]'), max_size=6)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Members(list[tuple[str, Any]]):
    """A model of an object whose keys may repeat."""


DOCUMENTS = st.recursive(
    st.integers(0, 9) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from(["a", "b", '"', "é"]), inner), max_size=4).map(Members)
    ),
    max_leaves=10,
)


def written(document: Any) -> str:
    if isinstance(document, Members):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(member)}" for key, member in document) + "}"
    if isinstance(document, list):
        return "[" + ",".join(map(written, document)) + "]"
    return json.dumps(document)


def repeated(document: Any, path: str = "") -> list[str]:
    """The naive model: the paths of keys that stood there before, outer before inner."""
    found: list[str] = []
    if isinstance(document, Members):
        for at, (key, member) in enumerate(document):
            inside = f"{path}.{key}" if path else key
            found += [inside] if key in [earlier for earlier, _ in document[:at]] else []
            found += repeated(member, inside)
    elif isinstance(document, list):
        for at, item in enumerate(document):
            found += repeated(item, f"{path}[{at}]")
    return list(dict.fromkeys(found))


@settings(max_examples=100, deadline=None)
@given(VALUES, st.booleans())
def test_valid_text_is_read_as_the_standard_library_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    parsed = parse(text.encode())
    assert parsed.value == json.loads(text)
    assert parsed.duplicates == ()
    assert syntax_error(text.encode()) is None


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_exactly_the_duplicate_keys_are_reported(document: Any) -> None:
    text = written(document)
    parsed = parse(text.encode())
    assert parsed.duplicates == tuple(f"duplicate field {quote(path)}" for path in repeated(document))
    assert parsed.value == json.loads(text)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(0, 200), st.sampled_from(list(b'{}[]",:x1\\ \n')))
def test_scanner_and_parser_reject_the_same_texts(value: Any, at: int, byte: int) -> None:
    data = bytearray(json.dumps(value).encode())
    data[at % len(data)] = byte
    try:
        json.loads(data)
    except ValueError:
        assert syntax_error(bytes(data)) is not None
    else:
        assert syntax_error(bytes(data)) is None


@settings(max_examples=200, deadline=None)
@given(VALUES, st.integers(0, 200), st.binary(max_size=3) | st.sampled_from([b"NaN", b"1e999", b"\\ud800", b"\\u00"]))
def test_message_equals_that_of_a_full_scan(value: Any, at: int, wedge: bytes) -> None:
    text = json.dumps([value] * 3).encode()
    data = text[: at % len(text)] + wedge + text[at % len(text) :]
    assert syntax_error(data) == _described_from_the_beginning(data)


def _described_from_the_beginning(data: bytes) -> str | None:
    try:
        _Scanner(data).run()
    except SyntaxFault as fault:
        return str(fault)
    return None


@pytest.mark.parametrize("depth", [253, 254, 255, 2000])
@pytest.mark.parametrize("inner", [b"", b"{}", b"[1],[2]", b'"]", [2]'])
def test_depth_equals_that_of_a_full_scan(depth: int, inner: bytes) -> None:
    data = b"[" * depth + inner + b"]" * depth
    assert syntax_error(data) == _described_from_the_beginning(data)
    assert syntax_error(data + b"!") == _described_from_the_beginning(data + b"!")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ('{"a":1', "unexpected end of JSON input"),
        ('"abc', "unexpected end of JSON input"),
        ("{not json", "invalid character 'n' looking for beginning of object key string"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g"', "invalid character 'g' in \\u hexadecimal character escape"),
        ('"a\tb"', "invalid character '\\t' in string literal"),
        ("<html>", "invalid character '<' looking for beginning of value"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
    ],
)
def test_bad_text_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse(text.encode())
    assert str(caught.value) == message


@pytest.mark.parametrize("depth", [255, 1_000, 100_000])
def test_text_that_is_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(JsonError, match=r"invalid character '\[' exceeded max depth"):
        parse(b"[" * depth + b"]" * depth)


def test_accepted_depth_can_be_encoded() -> None:
    value = parse(b'{"a":' * 254 + b"1" + b"}" * 254).value
    assert orjson.dumps(value).count(b"{") == 254


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'"\xff"', "\ufffd"),
        (b'"\xe2\x82x"', "\ufffd\ufffdx"),
        (b'"\\ud800x"', "\ufffdx"),
        (b'{"\xff":1}', {"\ufffd": 1}),
    ],
)
def test_broken_unicode_becomes_replacement_characters(data: bytes, value: Any) -> None:
    assert parse(data).value == value


def test_numbers_without_a_type_are_int64_or_float64() -> None:
    text = b'{"a":1.0,"b":18446744073709551615,"c":1e3,"d":[0.5,-9223372036854775808]}'
    found, printed = parse_untyped(text).value, parse_printed(text).value
    assert orjson.dumps(found) == b'{"a":1.0,"b":1.8446744073709552e+19,"c":1000.0,"d":[0.5,-9223372036854775808]}'
    assert orjson.dumps(printed) == b'{"a":1,"b":1.8446744073709552e+19,"c":1000,"d":[0.5,-9223372036854775808]}'


def test_a_number_without_a_type_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(JsonError, match="json: cannot unmarshal number 1e400 into Go value of type float64"):
        parse_untyped(b'{"a":1e400}')


def test_a_document_keeps_the_spelling_of_numbers() -> None:
    number = parse_document(b'{"a":1.50e1}')["a"]
    assert number.text == "1.50e1"
    assert number == 15.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xef\xbb\xbf{}", "invalid character '\\ufeff' looking for beginning of value"),
        (b'{"a" \xc3\xa9}', "invalid character 'é' after object key"),
        (b'{"a":\xff}', "invalid character '\\xff' looking for beginning of value"),
        (b'"a\tb"', "invalid character '\\t' in string"),
        (b'"\\x"', "invalid escape sequence `\\x` in string"),
        (b'"\\\x01"', 'invalid escape sequence "\\\\\\x01" in string'),
        (b'"\\u12', "unexpected end of JSON input"),
        (b'{"a":nul', "unexpected end of JSON input"),
        (b"- a", "invalid character ' ' in numeric literal"),
    ],
)
def test_interpretation_error_names_whole_characters(text: bytes, message: str) -> None:
    assert interpretation_error(text) == message
