"""Generated names for `generateName`: the prefix and five random characters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels or similar-looking characters, so that no words occur."""
RANDOM_LENGTH = 5
MAX_PREFIX_LENGTH = 63 - RANDOM_LENGTH

Choose: TypeAlias = Callable[[Sequence[str]], str]
"""Choose one of several characters with equal probability."""


def generate_name(prefix: str, choose: Choose | None = None) -> str:
    """Return a generated name that fits into a DNS label; long prefixes are truncated by bytes."""
    cut = prefix.encode()[:MAX_PREFIX_LENGTH].decode(errors="ignore")
    return cut + random_suffix(RANDOM_LENGTH, choose)


def random_suffix(length: int, choose: Choose | None = None) -> str:
    """Return a random suffix; unpredictable unless `choose` is given."""
    if choose is not None:
        return "".join(choose(ALPHABET) for _ in range(length))
    # One random number for all characters, large enough for practically uniform remainders.
    number, suffix = int.from_bytes(os.urandom(length + 8)), ""
    for _ in range(length):
        number, position = divmod(number, len(ALPHABET))
        suffix += ALPHABET[position]
    return suffix


def safe_encode(text: str) -> str:
    """Map a text, such as a hash, to the alphabet of generated names."""
    return "".join(ALPHABET[ord(char) % len(ALPHABET)] for char in text)
