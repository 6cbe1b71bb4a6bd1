"""Go's regular expressions: both engines find the same, and neither loses its way."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.patterns import find, find_all, matcher, refusal

PATTERNS = ["a+b", "^a?b*$", "(a|b)+", "[a-b]{1,2}x", "(a+)+x", "a(?P<n>b)c?", r"\(a+\)", "[(]a", "x*y*"]


@settings(max_examples=60, deadline=None)
@given(pattern=st.sampled_from(PATTERNS), text=st.text("abxy(c", max_size=8))
def test_what_is_found_is_what_python_finds(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    assert matcher(pattern)(text) is (found is not None)
    assert find(text, pattern) == (found[0] if found else "")


def test_all_matches_are_found_up_to_a_limit() -> None:
    assert find_all("a1b22c333", "[0-9]+") == ["1", "22", "333"]
    assert find_all("a1b22c333", "([a-z])([0-9])+", 2) == ["a1", "b22"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)*c", "a*a*a*a*c", "a+c"])
def test_no_text_makes_a_pattern_run_for_long(pattern: str) -> None:
    text = "a" * 50_000 + "b"
    start = time.process_time()
    assert not matcher(pattern)(text)
    assert find(text, pattern) == ""
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a|aa)*c$",
        "^(aa?)*c$",
        "^(a|a){30}c$",
        "^" + "(a|a)" * 30 + "c$",
        "^" + "a?" * 40 + "a" * 40 + "$",
        "(x+x+)+y",
    ],
)
def test_no_pattern_loses_its_way_in_a_short_text(pattern: str) -> None:
    start = time.process_time()
    assert not matcher(pattern)("a" * 39)
    assert find("a" * 39, pattern) == ""
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("((a{100}){100}){100}", "error parsing regexp: invalid repeat count: `{100}`"),
        ("[a-zé]{999}" * 99, "error parsing regexp: expression too large: `" + "[a-zé]{999}" * 99 + "`"),
    ],
)
def test_a_pattern_that_would_grow_without_bounds_is_refused(pattern: str, why: str) -> None:
    assert refusal(pattern) == why


@pytest.mark.parametrize("text", ["", "é", "é😀", "\u0000"])
def test_empty_matches_stand_between_characters(text: str) -> None:
    assert find_all(text, "(x*)*") == [""] * (len(text) + 1)


def test_the_end_of_a_text_is_its_very_end() -> None:
    assert not matcher("a$")("a\n")
    assert matcher("[$]")("$")


def test_what_is_no_pattern_is_a_failure() -> None:
    with pytest.raises(EvaluationFailed):
        matcher("a(")("a")
