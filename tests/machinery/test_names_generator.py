"""Generated names keep their prefix and fit into a DNS label."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.names_generator import ALPHABET, generate_name, random_suffix, safe_encode
from pilothouse.machinery.validation.names import is_dns1123_label


def test_a_name_is_the_prefix_and_five_random_characters() -> None:
    assert generate_name("web-", random.Random(1).choice) == "web-" + random_suffix(5, random.Random(1).choice)
    assert len(generate_name("web-")) == 9


def test_a_long_prefix_is_cut_at_fifty_eight_bytes() -> None:
    assert generate_name("a" * 100, lambda letters: letters[0]) == "a" * 58 + "b" * 5
    assert generate_name("é" * 29 + "x", lambda letters: letters[0]) == "é" * 29 + "b" * 5


def test_a_hash_is_spelled_with_the_same_characters() -> None:
    assert set(safe_encode("0123456789abcdef")) <= set(ALPHABET)
    assert safe_encode("a") == ALPHABET[97 % 27]


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,70})", fullmatch=True), st.randoms(use_true_random=False))
def test_a_generated_name_is_a_label_when_its_prefix_starts_one(prefix: str, source: random.Random) -> None:
    assert is_dns1123_label(generate_name(prefix, source.choice)) == []
