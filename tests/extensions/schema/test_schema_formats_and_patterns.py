"""Formats of strings, and regular expressions as Go has them."""

from __future__ import annotations

import pytest

from pilothouse.extensions.schema.definition.regular_expressions import go_regexp_error
from pilothouse.machinery.cel.patterns import matcher
from pilothouse.machinery.validation.formats import format_check

EXAMPLES = {
    "date-time": (["2020-01-02T03:04:05Z", "2020-01-02t03:04:05.678+01:00"], ["2020-01-02", "2020-01-02T24:00:00Z"]),
    "date": (["2020-02-29"], ["2021-02-29", "2020-1-1"]),
    "duration": (["1h30m", "22 ns", "3 days"], ["soon", ""]),
    "email": (["a@b.example", "Ann <ann@b.example>"], ["nobody", "a@", "::1", "a@::1", "\\\\@[(a:?"]),
    "hostname": (["a.example", "a-b", "1a"], ["-a", "a_b", "a..b", "a.1"]),
    "ipv4": (["10.0.0.1"], ["10.0.0", "::1"]),
    "ipv6": (["::1"], ["10.0.0.1", ":::"]),
    "cidr": (["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
    "mac": (["01:23:45:67:89:ab", "0123.4567.89AB"], ["01:23-45:67:89:ab", "01:23"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
    "uuid4": (["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
    "byte": (["aGk=", "aGkh"], ["aGk", "", "a*k="]),
    "uri": (["https://a.example/x", "/path"], ["relative", "http://a b"]),
    "isbn10": (["0321751043"], ["0321751044"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
    "hexcolor": (["#FFF", "a0b1c2"], ["#FFFF"]),
    "rgbcolor": (["rgb(1, 2, 255)"], ["rgb(1,2,256)"]),
    "ssn": (["111-22-3333"], ["111223333"]),
    "k8s-short-name": (["a-b"], ["A", "a" * 64]),
    "k8s-long-name": (["a.b-c"], ["a..b"]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_format_accepts_only_valid_values(name: str) -> None:
    check = format_check(name)
    assert check is not None
    right, wrong = EXAMPLES[name]
    assert [text for text in right if not check(text)] == []
    assert [text for text in wrong if check(text)] == []


def test_an_unknown_format_is_no_format() -> None:
    assert format_check("no-such-format") is None


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("^[a-z]+$", "abc", "abc\n"),
        (r"^\p{L}+$", "é", "1"),
        ("^[[:alpha:]]+$", "ab", "a1"),
        ("^[]$]$", "$", "x"),
        (r"^a\$$", "a$", "a"),
        ("b", "abc", "ac"),
        (r"^\d+\z", "12", "12\n"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("(?m)^b$", "a\nb", "ab"),
    ],
)
def test_patterns_match_as_they_do_in_go(pattern: str, right: str, wrong: str) -> None:
    assert matcher(pattern)(right)
    assert not matcher(pattern)(wrong)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("([", "missing closing ]: `[`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<=`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\1", r"invalid escape sequence: `\1`"),
    ],
)
def test_invalid_go_regexp_is_rejected_with_gos_message(pattern: str, why: str) -> None:
    assert go_regexp_error(pattern) == f"error parsing regexp: {why}"


@pytest.mark.parametrize(
    "pattern", ["^[a-z]([-a-z0-9]*[a-z0-9])?$", r"[\w.-]+", "(?i)x*?", r"[^\]]", "^$|^(?:a)$", "(?P<n>a)"]
)
def test_valid_go_regexp_is_accepted(pattern: str) -> None:
    assert go_regexp_error(pattern) == ""
