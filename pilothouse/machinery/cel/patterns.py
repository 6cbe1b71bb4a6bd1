"""Patterns: Go's regular expressions, which are matched in linear time whatever the pattern and the text.

RE2 runs them, as it does for Go. Python's engine, which is quicker to start, runs those that mean the same to it and
in which there are only a few ways to go wrong before it gives up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pilothouse.machinery.bounded_cache import BoundedCache, bounded_cache
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed

Matcher: TypeAlias = Callable[[str], bool]
"""Whether the pattern is found in a text."""

_DIFFERENT = re.compile(r"\\[pPCQ]|\\x\{|\[:|\{,|\(\?[a-zA-Z-]*m")
"""Character properties, POSIX classes, literal braces and line mode, in which the engines differ."""
_REPEATS = re.compile(r"[*+]|\{\d+,?\d*\}")
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")
"""Each round of a group may take what the round before could have taken: ways multiply without end."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_MOST_OPTIONS: Final = 4
"""Of `?` and `|` together: each doubles the ways at most."""
_LONG: Final = 256
"""A search begins at each character, and a repetition tries each length, so that even a straight one is quadratic."""
_USUAL_MEMORY: Final = 64 << 10
_MOST_MEMORY: Final = 4 << 20
"""Of a compiled pattern with all that its searches keep, in bytes: what nearly all are content with, and the limit."""
_KEPT: Final = 256
_COMPILED: Final[BoundedCache[str, Any]] = BoundedCache(entries=_KEPT, total_bytes=16 * (_MOST_MEMORY + (1 << 20)))


@bounded_cache(entries=_KEPT, key_bytes=_LONG)
def matcher(pattern: str) -> Matcher:
    """`pattern` must be one that Go takes; the matcher of another raises EvaluationFailed."""
    known = _python_pattern(pattern)

    def matches(text: str) -> bool:
        if known is None or len(text) > _LONG:
            return _compiled(pattern).search(text.encode()) is not None
        return known.search(text) is not None

    return matches


def find(text: str, pattern: str) -> str:
    """The first match; empty where there is none. Raises EvaluationFailed for what is no pattern."""
    found = _engine(text, pattern).search(text)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [each[0] for each in _engine(text, pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def refusal(pattern: str) -> str:
    """Why RE2 does not take a pattern, in Go's words where the reason is its size; empty where it does."""
    try:
        _compiled(pattern)
    except EvaluationFailed as failure:
        return str(failure)
    return ""


def _engine(text: str, pattern: str) -> Any:
    """A compiled pattern of either engine: they have the same methods."""
    known = _python_pattern(pattern) if len(text) <= _LONG else None
    return known or _compiled(pattern)


@bounded_cache(entries=_KEPT, key_bytes=_LONG)
def _python_pattern(pattern: str) -> re.Pattern[str] | None:
    """None for what is better left to the other engine."""
    if len(pattern) > _LONG or _DIFFERENT.search(pattern) is not None or not _is_straight(pattern):
        return None
    try:
        return re.compile(_for_python(pattern), re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


def _is_straight(pattern: str) -> bool:
    """Whether at most one repetition, of a single character, and a few options leave little to try."""
    syntax = "".join(token if len(token) == 1 else "x" for token in _TOKEN.findall(pattern))
    if _REPEATED_GROUP.search(syntax) is not None:
        return False
    return len(_REPEATS.findall(syntax)) <= 1 and syntax.count("?") + syntax.count("|") <= _MOST_OPTIONS


def _for_python(pattern: str) -> str:
    r"""Return the pattern for Python: in Go `$` matches at the very end only, as `\Z` does in Python, and `\z` is the
    name of that.
    """
    return "".join(r"\Z" if token in (r"\z", "$") else token for token in _TOKEN.findall(pattern))


def _compiled(pattern: str) -> Any:
    """Raises EvaluationFailed."""
    import re2

    found = _COMPILED.get(pattern)
    if found is None:
        memory = _USUAL_MEMORY
        try:
            found = _compile(pattern, memory)
        except re2.error:
            memory = _MOST_MEMORY
            try:
                found = _compile(pattern, memory)
            except re2.error as error:
                raise EvaluationFailed(f"error parsing regexp: {_in_go_s_words(error, pattern)}") from None
        _COMPILED.put(pattern, found, size=memory + 4 * len(pattern))
    return found


def _compile(pattern: str, memory: int) -> Any:
    """Raises re2.error."""
    import re2

    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, memory
    try:
        return re2.compile(pattern, options)
    finally:
        re2.purge()  # its own cache knows of numbers only, not of bytes


def _in_go_s_words(error: Exception, pattern: str) -> str:
    text = error.args[0]
    code, _, argument = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).partition(": ")
    if code == "invalid repetition size":
        code = "invalid repeat count"
    elif "too large" in code:
        code, argument = "expression too large", pattern
    return f"{code}: `{argument or pattern}`"
