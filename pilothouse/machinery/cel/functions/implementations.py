"""Kubernetes' own CEL functions at work. Values of its types are maps with one marked key: equal ones are equal.

A function that raises makes the rule fail with its message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from pilothouse.machinery.cel.functions import network, quantities, semver, urls
from pilothouse.machinery.cel.patterns import find, find_all
from pilothouse.machinery.dataclass import dataclass

Marked: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Implementation:
    name: str
    parameters: tuple[str, ...]
    run: Callable[..., Any]
    is_member: bool = False


def implementations() -> Iterator[Implementation]:
    for name, run, arity in _FUNCTIONS:
        yield Implementation(name, ("dyn",) * arity, run)
    for name, run, arity in _MEMBERS:
        yield Implementation(name, ("dyn",) * arity, run, is_member=True)
    for name, run in _OF_LISTS.items():
        yield Implementation(name, ("list<dyn>",), run, is_member=True)
    for name, run in _IN_LISTS.items():
        yield Implementation(name, ("list<dyn>", "dyn"), run, is_member=True)
    yield Implementation("string", ("map<dyn, dyn>",), _as_string)


def _as_string(value: Marked) -> str:
    return str(value.get(network.ADDRESS) or value[network.RANGE])


def _is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(items))


def _least(items: list[Any]) -> Any:
    if not items:
        raise ValueError("min called on empty list")
    return min(items)


def _most(items: list[Any]) -> Any:
    if not items:
        raise ValueError("max called on empty list")
    return max(items)


def _index_of(items: list[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if each == item), -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    return max((index for index, each in enumerate(items) if each == item), default=-1)


def _compare(a: Marked, b: Marked) -> int:
    left, right = _ordinal(a), _ordinal(b)
    return int(left > right) - int(left < right)


def _ordinal(value: Marked) -> Any:
    return quantities.fraction(value) if quantities.MARK in value else semver.ordinal(value)


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _sum(items: Iterable[Any]) -> Any:
    return sum(items)


def _sign(value: Marked) -> int:
    amount: Fraction = quantities.fraction(value)
    return (amount > 0) - (amount < 0)


_OF_LISTS: dict[str, Callable[..., Any]] = {"isSorted": _is_sorted, "min": _least, "max": _most, "sum": _sum}
_IN_LISTS: dict[str, Callable[..., Any]] = {"indexOf": _index_of, "lastIndexOf": _last_index_of}

_FUNCTIONS: tuple[tuple[str, Callable[..., Any], int], ...] = (
    ("url", urls.parse, 1),
    ("isURL", urls.is_url, 1),
    ("quantity", quantities.parse, 1),
    ("isQuantity", quantities.is_quantity, 1),
    ("sign", _sign, 1),
    ("ip", network.parse_ip, 1),
    ("isIP", network.is_ip, 1),
    ("ip.isCanonical", network.is_canonical, 1),
    ("cidr", network.parse_cidr, 1),
    ("isCIDR", network.is_cidr, 1),
    ("semver", semver.parse, 1),
    ("semver", semver.parse, 2),
    ("isSemver", semver.is_semver, 1),
    ("isSemver", semver.is_semver, 2),
    ("jsonpatch.escapeKey", _escape_key, 1),
)
_MEMBERS: tuple[tuple[str, Callable[..., Any], int], ...] = (
    *((name, run, 1) for name, run in urls.PARTS.items()),
    ("find", find, 2),
    ("findAll", find_all, 2),
    ("findAll", find_all, 3),
    ("isGreaterThan", lambda a, b: _compare(a, b) > 0, 2),
    ("isLessThan", lambda a, b: _compare(a, b) < 0, 2),
    ("compareTo", _compare, 2),
    ("asApproximateFloat", quantities.as_float, 1),
    ("asInteger", quantities.as_integer, 1),
    ("isInteger", quantities.is_integer, 1),
    ("add", quantities.add, 2),
    ("sub", quantities.subtract, 2),
    *((name, run, 1) for name, run in network.TRAITS.items()),
    ("containsIP", network.contains_ip, 2),
    ("containsCIDR", network.contains_cidr, 2),
    ("ip", network.ip_of, 1),
    ("prefixLength", network.prefix_length, 1),
    ("masked", network.masked, 1),
    *((name, run, 1) for name, run in semver.PARTS.items()),
)
