"""Patterns: Go's regular expressions, run by Python's engine where both mean the same, and by CEL's RE2 elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

Matcher: TypeAlias = Callable[[str], Any]
"""Answers something true for a text in which the pattern is found."""

_DIFFERENT = re.compile(r"\\[pPCQ]|\\x\{|\[:|\{,|\(\?[a-zA-Z-]*m")
"""Character properties, POSIX classes, literal braces and line mode, in which the engines differ."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matcher:
    """`pattern` must be one that Go takes."""
    try:
        return python_pattern(pattern).search
    except ValueError:
        return _re2_matcher(pattern)


@lru_cache(maxsize=1024)
def python_pattern(pattern: str) -> re.Pattern[str]:
    """The same for Python's engine. Raises ValueError for what that does not have."""
    if _DIFFERENT.search(pattern) is not None:
        raise ValueError(f"not supported in a pattern here: {pattern}")
    try:
        return re.compile(_for_python(pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp: {error}") from None


def _for_python(pattern: str) -> str:
    """In Go `$` matches at the very end only, as `\\Z` does in Python, and `\\z` is the name of that."""
    parts: list[str] = []
    in_class = False
    for token in re.findall(r"\\.|.", pattern, re.DOTALL):
        if token == "[" and not in_class:
            in_class = True
        elif token == "]" and parts[-1:] not in (["["], ["^"]):
            in_class = False
        parts.append(r"\Z" if token == r"\z" or (token == "$" and not in_class) else token)
    return "".join(parts)


def _re2_matcher(pattern: str) -> Matcher:
    from pilothouse.machinery.cel.runtime import runtime_environment

    environment = runtime_environment(("text", "pattern"))
    program = environment.compile("text.matches(pattern)")

    def matches(text: str) -> bool:
        return environment.evaluate(program, {"text": text, "pattern": pattern}) is True

    return matches
