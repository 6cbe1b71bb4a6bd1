"""Patterns: Go's regular expressions, which are matched in linear time whatever the text.

Python's engine runs those that mean the same to it and in which it cannot lose its way; CEL's RE2 runs the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed

Matcher: TypeAlias = Callable[[str], bool]
"""Whether the pattern is found in a text."""

_DIFFERENT = re.compile(r"\\[pPCQ]|\\x\{|\[:|\{,|\(\?[a-zA-Z-]*m")
"""Character properties, POSIX classes, literal braces and line mode, in which the engines differ."""
_CHOICES = re.compile(r"[*+]|\{\d+,\d*\}")
"""Where Python's engine tries one length after the other. With two of them it may try all pairs, and so on."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_MOST_OPTIONS = 4
_LONG = 1024
"""Where a search may begin in as many places as there are characters, even one choice takes too long."""
_CAPTURE = re.compile(r"\((?:\?P?<\w+>|(?!\?))")


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matcher:
    """`pattern` must be one that Go takes."""
    known = _python_pattern(pattern)

    def matches(text: str) -> bool:
        if known is None or len(text) > _LONG:
            return _re2("text.matches(pattern)", text, pattern) is True
        return known.search(text) is not None

    return matches


def find(text: str, pattern: str) -> str:
    """The first match; empty where there is none. Raises EvaluationFailed for what is no pattern."""
    known = _python_pattern(pattern)
    if known is None or len(text) > _LONG:
        return str(_re2("regex.extract(text, pattern).orValue('')", text, _captured(pattern)))
    found = known.search(text)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    known = _python_pattern(pattern)
    if known is None or len(text) > _LONG:
        found = list(_re2("regex.extractAll(text, pattern)", text, _captured(pattern)))
    else:
        found = [each[0] for each in known.finditer(text)]
    return found if limit < 0 else found[:limit]


@lru_cache(maxsize=1024)
def _python_pattern(pattern: str) -> re.Pattern[str] | None:
    """None for what is better left to the other engine."""
    if _DIFFERENT.search(pattern) is not None or not _is_straight(pattern):
        return None
    try:
        return re.compile(_for_python(pattern), re.ASCII)
    except re.error:
        return None


def _is_straight(pattern: str) -> bool:
    syntax = "".join(token if len(token) == 1 else "x" for token in _TOKEN.findall(pattern))
    return len(_CHOICES.findall(syntax)) <= 1 and syntax.count("?") <= _MOST_OPTIONS


def _for_python(pattern: str) -> str:
    """In Go `$` matches at the very end only, as `\\Z` does in Python, and `\\z` is the name of that."""
    return "".join(r"\Z" if token in (r"\z", "$") else token for token in _TOKEN.findall(pattern))


def _captured(pattern: str) -> str:
    """With one group, which is all of it."""
    tokens = _TOKEN.findall(pattern)
    # Groups stand where a parenthesis is a token of its own: neither escaped nor in a class.
    marked = "".join(token if len(token) == 1 else f"\0{index}\0" for index, token in enumerate(tokens))
    plain = _CAPTURE.sub("(?:", marked)
    return "(" + re.sub(r"\0(\d+)\0", lambda found: tokens[int(found[1])], plain) + ")"


def _re2(expression: str, text: str, pattern: str) -> Any:
    """Raises EvaluationFailed."""
    native = _re2_program(expression)
    result = native.eval(_re2_environment().Activation({"text": text, "pattern": pattern}))
    if result.type().name() == "ERROR":
        raise EvaluationFailed(f"error parsing regexp: `{pattern}`")
    return result.plain_value()


@lru_cache(maxsize=4)
def _re2_program(expression: str) -> Any:
    return _re2_environment().compile(expression)


@lru_cache(maxsize=1)
def _re2_environment() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml("name: patterns\nextensions:\n- name: optional\n- name: regex\n"),
        variables=dict.fromkeys(("text", "pattern"), cel.Type("string")),
    )
