"""Patterns without RE2: the same matches, in linear time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.cel.linear_patterns import InvalidPattern, LinearPattern

atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab)", "\\w", "a?", "b*", "(a*)b", "^", "$", "\\b"])
patterns = st.lists(st.tuples(atoms, st.sampled_from(["", "?"])), max_size=5).map(
    lambda parts: "".join(atom + (more if atom[-1] not in "?*^$b" else "") for atom, more in parts)
)


@settings(max_examples=300, deadline=None)
@given(pattern=patterns, text=st.text("ab c", max_size=8))
def test_matches_are_those_of_python(pattern: str, text: str) -> None:
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text)
    assert LinearPattern(pattern).matches(text) is (expected is not None)
    assert LinearPattern(pattern).first(text) == (expected[0] if expected else "")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\8", "invalid escape sequence: `\\8`"),
    ],
)
def test_invalid_patterns_are_refused_in_the_words_of_go(pattern: str, message: str) -> None:
    with pytest.raises(InvalidPattern) as failed:
        LinearPattern(pattern)
    assert str(failed.value) == message


def test_time_is_linear_where_backtracking_explodes() -> None:
    pattern, started = LinearPattern("(a*)*b"), time.process_time()
    assert not pattern.matches("a" * 2_000)
    assert time.process_time() - started < 5


def test_all_matches_are_found_as_go_finds_them() -> None:
    assert list(LinearPattern("").every("aXbX")) == [""] * 5
    assert list(LinearPattern("a*").every("baaac")) == ["", "aaa", ""]
    assert list(LinearPattern(r"(?i)[a-z]+\d{2,3}").every("Ab12 c345 d6")) == ["Ab12", "c345"]
