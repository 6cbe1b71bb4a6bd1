"""Exact JSON documents: duplicate keys in order, numbers with their notation.

Only rejected bodies are examined in this form; valid bodies become plain dicts and lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint


class Pairs(list[tuple[str, Any]]):
    """Members of an object with duplicate keys, in order. Objects without duplicates are dicts."""


CONTAINERS = frozenset({dict, list, Pairs})


class Literal(float):
    """A number other than a plain integer, with its source text."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def of(cls, text: str) -> Literal:
        number = cls(text)
        number.text = text
        return number


def is_object(value: Any) -> bool:
    return isinstance(value, (dict, Pairs))


def is_array(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, Pairs)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def members(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the members of an object in either form, in the order of the text."""
    return value if isinstance(value, Pairs) else value.items()


def numbered(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield (key, member, is duplicate) for each member of an object in either form."""
    if not isinstance(value, Pairs):
        for key, member in value.items():
            yield key, member, False
        return
    times: dict[str, int] = {}
    for key, member in value:
        checkpoint()
        times[key] = times.get(key, 0) + 1
        yield key, member, times[key] == 2


def is_too_deep(value: Any, most: int) -> bool:
    """Return whether objects and lists are nested deeper than `most` levels."""
    level = [value] if type(value) in CONTAINERS else []
    for _ in range(most):
        if not level:
            return False
        level = [part for whole in level for part in _containers_in(whole)]
    return bool(level)


def _containers_in(value: Any) -> list[Any]:
    checkpoint()
    return [part for part in _parts(value) if type(part) in CONTAINERS]


def _parts(value: Any) -> Iterable[Any]:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else [member for _, member in value]


def spelling(number: float) -> str:
    return number.text if isinstance(number, Literal) else repr(number).removesuffix(".0")


def plain(value: Any) -> Any:
    """Convert to dicts, lists and plain numbers; the last of several members with the same key wins."""
    checkpoint()
    if is_object(value):
        return {key: member if type(member) in _PLAIN else plain(member) for key, member in members(value)}
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else plain(item) for item in value]
    return as_float(value) if type(value) is Literal or type(value) is int else value


_PLAIN = frozenset({str, bool, type(None)})


def as_go_copies(value: Any) -> Any:
    """Convert to dicts and lists, with a Literal for each number whose notation differs from Go's output."""
    checkpoint()
    if is_object(value):
        return {key: as_go_copies(member) for key, member in members(value)}
    if isinstance(value, list):
        return list(map(as_go_copies, value))
    if type(value) is Literal:
        number = float(value)
        return number if repr(number) == value.text and not number.is_integer() else value
    return Literal.of(str(value)) if type(value) is int and type(as_float(value)) is float else value


def as_float(number: float) -> float:
    """Return the number as the fast parser does: integers beyond 64 bits become floats."""
    if type(number) is int and -(1 << 63) <= number < 1 << 64:
        return number
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf
