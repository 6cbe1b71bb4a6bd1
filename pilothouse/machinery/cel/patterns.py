"""Go's regular expressions, matched in linear time whatever the pattern and the text.

RE2 runs them, or `linear_patterns` where google-re2 is not installed. Python's engine, which is quicker to start, runs
patterns that mean the same to it and leave it only a few ways to backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from pilothouse.machinery.bounded_cache import BoundedCache, bounded_cache
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.linear_patterns import InvalidPattern, LinearPattern

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
            return bool(_compiled(pattern).matches(text))
        return known.search(text) is not None

    return matches


def find(text: str, pattern: str) -> str:
    """Return the first match, or an empty text. Raises EvaluationFailed for an invalid pattern."""
    known = _python_pattern(pattern) if len(text) <= _LONG else None
    if known is None:
        return str(_legal(pattern).first(text))
    found = known.search(text)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """A negative limit is none."""
    matches = _legal(pattern).every(text)
    return list(matches if limit < 0 else islice(matches, limit))


def _legal(pattern: str) -> Any:
    """Raises EvaluationFailed."""
    try:
        return _compiled(pattern)
    except EvaluationFailed as error:
        raise EvaluationFailed(f"Illegal regex: {error}") from None


def refusal(pattern: str) -> str:
    """Why RE2 does not take a pattern, in Go's words where the reason is its size; empty where it does."""
    try:
        _compiled(pattern)
    except EvaluationFailed as failure:
        return str(failure)
    return ""


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
    """Return a LinearPattern, or RE2's in the same form. Raises EvaluationFailed."""
    found = _COMPILED.get(pattern)
    if found is None:
        memory = _MOST_MEMORY
        try:
            found, memory = _compile(pattern)
        except InvalidPattern as error:
            raise EvaluationFailed(f"error parsing regexp: {error}") from None
        _COMPILED.put(pattern, found, size=memory + 4 * len(pattern))
    return found


def _compile(pattern: str) -> tuple[Any, int]:
    """Return the compiled pattern and the memory that it may take. Raises InvalidPattern."""
    try:
        import re2
    except ImportError:
        return LinearPattern(pattern), 256 * len(pattern)
    if "\\C" in pattern and (found := _ANY_BYTE.search(pattern)) is not None:
        raise InvalidPattern(f"invalid escape sequence: `{found[1]}`")  # RE2 takes it, Go does not
    for memory in (_USUAL_MEMORY, _MOST_MEMORY):
        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, memory
        try:
            return _RE2Pattern(re2.compile(pattern, options)), memory
        except re2.error as error:
            failure = error
        finally:
            re2.purge()  # its own cache is bounded by entries, not by bytes
    raise InvalidPattern(_in_go_s_words(failure, pattern))


_ANY_BYTE: Final = re.compile(r"(?:\\\\|[^\\])*?(\\C)", re.DOTALL)


class _RE2Pattern:
    """RE2's pattern in the form of LinearPattern."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        return self._compiled.search(text.encode()) is not None

    def first(self, text: str) -> str:
        found = self._compiled.search(text)
        return found[0] if found else ""

    def every(self, text: str) -> Iterator[str]:
        """An empty match directly after another match does not count, as in Go."""
        last = -1
        for found in self._compiled.finditer(text):
            start, end = found.span()
            if end > start or start != last:
                yield found[0]
            last = end


def _in_go_s_words(error: Exception, pattern: str) -> str:
    text = error.args[0]
    code, _, argument = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).partition(": ")
    if code == "invalid repetition size":
        code = "invalid repeat count"
    elif code == "bad repetition operator":
        code = "invalid nested repetition operator"
    elif code == "no argument for repetition operator":
        code = "missing argument to repetition operator"
    elif code in ("invalid perl operator", "invalid named capture group"):
        code = "invalid or unsupported Perl syntax"
    elif code in ("missing )", "missing ]"):
        code = f"missing closing {code[-1]}"
    elif code in ("trailing \\", "trailing \\ at end of regexp"):
        return "trailing backslash at end of expression: ``"
    elif "too large" in code:
        code, argument = "expression too large", pattern
    return f"{code}: `{argument or pattern}`"
