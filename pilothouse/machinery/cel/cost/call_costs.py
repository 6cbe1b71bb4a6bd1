"""The most that calls can cost, and how large their results can be: those of Kubernetes' functions and its libraries',
and those of CEL's own operators and functions.
"""

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
from pilothouse.machinery.cel.signatures import OPAQUE_TYPES
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: its size, the size of its items if it is a list, and a number if it is that literally."""

    size: Size = UNKNOWN
    item: Size | None = None
    """None where the operand is no list."""
    has_text_items: bool = False
    number: int | None = None
    type_name: str = ""
    """Of a message: an object, or what only functions make and take."""


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


def _validate(operand: Operand, args: list[Operand], overload: str) -> CallCost:
    """A format is a pattern that is matched with the text."""
    text = scaled((args[0] if args else operand).size.most, TRAVERSAL)
    return CallCost(scaled(text, _LONGEST_PATTERN_OF_A_FORMAT * PATTERN))


def _equality(operand: Operand, args: list[Operand], overload: str) -> CallCost | None:
    """None for values of types that are CEL's own, or that differ."""
    kind = operand.type_name
    if kind not in OPAQUE_TYPES or kind != args[1].type_name:
        return None
    if kind == "kubernetes.NamedFormat":
        return CallCost(scaled(_LONGEST_NAME_OF_A_FORMAT, TRAVERSAL))
    if kind == "kubernetes.URL":
        return CallCost(scaled(args[1].size.most, TRAVERSAL))
    return CallCost(1)


_LONGEST_PATTERN_OF_A_FORMAT = 128
_LONGEST_NAME_OF_A_FORMAT = 64

_CHEAP = frozenset(
    (
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger"),
        *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)
_ESTIMATES: dict[str, Callable[[Operand, list[Operand], str], CallCost | None]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _each_item),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversal),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    **dict.fromkeys(("find", "findAll"), _find),
    "_==_": _equality,
    "ip.isCanonical": _double_traversal,
    "validate": _validate,
    "replace": _replace,
    "split": _split,
    "join": _join,
}


_COMPARISONS = {"equals", "not_equals"} | {
    f"{order}_{kind}" for order in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
}


def operator_cost(overload: str, target: Operand | None, args: list[Operand], costs: list[int]) -> CallCost:
    """Return the cost of an operator or function of CEL itself; one that is not known costs one.

    `costs` are those of the arguments, which are included.
    """
    spent = total(*costs)
    if overload in ("logical_or", "logical_and"):
        return CallCost(spent)
    if overload == "conditional":
        return CallCost(total(costs[0], max(costs[1], costs[2])), args[1].size | args[2].size)
    if overload in _COMPARISONS:
        return CallCost(total(scaled(min(args[0].size.most, args[1].size.most), TRAVERSAL), spent))
    if overload in ("add_string", "add_bytes", "add_list"):
        size = args[0].size + args[1].size
        own = 1 if overload == "add_list" else scaled(size.most, TRAVERSAL)
        return CallCost(total(own, spent), size)
    if target is not None and args:
        return _member_cost(overload, target, args[0], spent)
    return _function_cost(overload, args, spent)


def _member_cost(overload: str, target: Operand, arg: Operand, spent: int) -> CallCost:
    match overload:
        case "starts_with_string" | "ends_with_string":
            return CallCost(total(scaled(arg.size.most, TRAVERSAL), spent))
        case "matches_string":
            text = scaled(total(target.size.most, 1), TRAVERSAL)
            return CallCost(total(product(text, scaled(arg.size.most, PATTERN)), spent))
        case "contains_string":
            both = product(scaled(target.size.most, TRAVERSAL), scaled(arg.size.most, TRAVERSAL))
            return CallCost(total(both, spent))
        case "string_format":
            return CallCost(total(scaled(target.size.most, TRAVERSAL), spent))
    return CallCost(total(1, spent))


def _function_cost(overload: str, args: list[Operand], spent: int) -> CallCost:
    if overload == "in_list":
        return CallCost(total(args[1].size.most, spent))
    if overload == "string_to_bytes":
        size = args[0].size
        return CallCost(total(scaled(size.most, TRAVERSAL), spent), Size(size.least, min(size.most * 4, LIMITLESS)))
    if overload == "strings_quote":
        size = args[0].size
        return CallCost(total(scaled(size.most, TRAVERSAL), spent), size + size + Size(2, 2))
    if overload == "bytes_to_string":
        size = args[0].size
        return CallCost(total(scaled(size.most, TRAVERSAL), spent), Size(size.least // 4, size.most))
    return CallCost(total(1, spent))
