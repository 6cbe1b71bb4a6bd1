"""The most that Kubernetes' functions and those of its libraries can cost, and how large their results can be."""

from __future__ import annotations

import math
from collections.abc import Callable

from pilothouse.machinery.cel.cost.sizes import (
    LIMITLESS,
    PATTERN,
    TRAVERSAL,
    UNKNOWN,
    Size,
    product,
    scaled,
    total,
)
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: its size, the size of its items if it is a list, and a number if it is that literally."""

    size: Size = UNKNOWN
    item: Size | None = None
    """None where the operand is no list."""
    has_text_items: bool = False
    number: int | None = None


@dataclass(frozen=True, slots=True)
class CallCost:
    cost: int
    result: Size | None = None


def call_cost(function: str, overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    """None for the functions of CEL itself. Arguments are not included."""
    if function in _CHEAP or (function == "ip" and target is not None):
        return CallCost(1)
    operand = target if target is not None else (args[0] if args else None)
    estimate = _ESTIMATES.get(function)
    if estimate is None or operand is None:
        return None
    return estimate(operand, args, overload)


def _traversal(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    return CallCost(scaled(operand.size.most, TRAVERSAL))


def _double_traversal(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    return CallCost(scaled(operand.size.most, 2 * TRAVERSAL))


def _same_size(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    return CallCost(scaled(operand.size.most, TRAVERSAL), operand.size)


def _each_item(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    if operand.item is None:
        return _traversal(operand, args, overload)
    each = total(1, scaled(operand.item.most, TRAVERSAL) if operand.has_text_items else 0)
    return CallCost(product(operand.size.most, each))


def _split(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    most = args[1].number if len(args) > 1 and args[1].number is not None else operand.size.most
    return CallCost(scaled(operand.size.most, 2 * TRAVERSAL), Size(0, most & LIMITLESS))


def _join(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    size = operand.size * operand.item if operand.item is not None else Size(0, 0)
    if args:
        separators = Size(max(operand.size.least - 1, 0), max(operand.size.most - 1, 0))
        size = size + args[0].size * separators
    return CallCost(scaled(size.most, TRAVERSAL), size)


def _find(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    text = scaled(total(operand.size.most, 1), TRAVERSAL)
    pattern = scaled(args[0].size.most, PATTERN) if args else LIMITLESS
    return CallCost(product(text, pattern), Size(0, operand.size.most))


def _replace(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    if len(args) < 2:
        return CallCost(1)
    size, old, new = operand.size, args[0].size, args[1].size
    if old.least == 0:
        most = total(product(total(size.most, 1), new.most), size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = product(math.ceil(size.most / old.least), new.most)
    return CallCost(scaled(size.most, 2 * TRAVERSAL), Size(0, most))


def _contains_address(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    """Comparing two addresses, of sixteen bytes at most, and reading one that is text."""
    cost = scaled(32, TRAVERSAL)
    if overload.startswith("containsCIDR"):
        cost = total(cost, scaled(16, TRAVERSAL), 1)
    if overload.endswith("string)") and args:
        cost = total(cost, scaled(args[0].size.most, TRAVERSAL))
    return CallCost(cost)


_CHEAP = frozenset(
    (
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger"),
        *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)
_ESTIMATES: dict[str, Callable[[Operand, list[Operand], str], CallCost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _each_item),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversal),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    **dict.fromkeys(("find", "findAll"), _find),
    "ip.isCanonical": _double_traversal,
    "replace": _replace,
    "split": _split,
    "join": _join,
}
