"""Names for objects that are created with a generateName: the prefix and five random characters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like one, so that no words come about."""
RANDOM_LENGTH = 5
MAX_PREFIX_LENGTH = 63 - RANDOM_LENGTH

Choose: TypeAlias = Callable[[Sequence[str]], str]
"""Picks one of several characters, each equally likely."""


def generate_name(prefix: str, choose: Choose | None = None) -> str:
    """A name that fits into a DNS label, whatever the prefix's length in bytes."""
    cut = prefix.encode()[:MAX_PREFIX_LENGTH].decode(errors="ignore")
    return cut + random_suffix(RANDOM_LENGTH, choose)


def random_suffix(length: int, choose: Choose | None = None) -> str:
    """Nobody can guess it, unless `choose` is guessable."""
    if choose is not None:
        return "".join(choose(ALPHABET) for _ in range(length))
    # One random number for all characters, and so large that its remainders are equally likely.
    number, suffix = int.from_bytes(os.urandom(length + 8)), ""
    for _ in range(length):
        number, at = divmod(number, len(ALPHABET))
        suffix += ALPHABET[at]
    return suffix


def safe_encode(text: str) -> str:
    """A hash, say, in the characters that generated names use."""
    return "".join(ALPHABET[ord(char) % len(ALPHABET)] for char in text)
