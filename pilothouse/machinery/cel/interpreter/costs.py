"""The costs of calls as they happen, in upstream's units. Calls that are not here cost one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.cel.functions import formats, network
from pilothouse.machinery.cel.interpreter.values import Optional

LIST, MAP, STRUCT = 10, 30, 40
"""The costs of making one."""
_AUTHORIZATION_CHECK = 350_000
_TRAVERSAL = 0.1
_PATTERN = 0.25
_SIZED = (str, bytes, list, dict)

CallCost: TypeAlias = Callable[[Sequence[Any], Any], int]


def _size(value: Any) -> int:
    if type(value) is Optional and value.present:
        return _size(value.value)
    if type(value) is dict and len(value) == 1 and (network.ADDRESS in value or network.RANGE in value):
        return 16 if ":" in str(next(iter(value.values()))) else 4
    return len(value) if isinstance(value, _SIZED) else 1


def _scaled(size: float, factor: float) -> int:
    return math.ceil(size * factor)


def _traversal(args: Sequence[Any], result: Any) -> int:
    return _scaled(_size(args[0]), _TRAVERSAL)


def _double_traversal(args: Sequence[Any], result: Any) -> int:
    return _scaled(_size(args[0]), 2 * _TRAVERSAL)


def _items(args: Sequence[Any], result: Any) -> int:
    """Looking at each item once."""
    items = args[0]
    if not isinstance(items, list):
        return 1
    return sum(_scaled(len(item), _TRAVERSAL) if type(item) in (str, bytes) else 1 for item in items)


def _joined(args: Sequence[Any], result: Any) -> int:
    return _scaled(_size(result), 2 * _TRAVERSAL)


def _searched(args: Sequence[Any], result: Any) -> int:
    return _scaled(1 + _size(args[0]), _TRAVERSAL) * _scaled(_size(args[1]), _PATTERN)


def _contained(args: Sequence[Any], result: Any) -> int:
    return _scaled(_size(args[0]), _TRAVERSAL) * _scaled(_size(args[1]), _TRAVERSAL)


def _compared(args: Sequence[Any], result: Any) -> int:
    return _scaled(min(_size(args[0]), _size(args[1])), _TRAVERSAL)


def _ordered(args: Sequence[Any], result: Any) -> int:
    return _compared(args, result) if type(args[0]) in (str, bytes) else 1


def _added(args: Sequence[Any], result: Any) -> int:
    return _scaled(_size(args[0]) + _size(args[1]), _TRAVERSAL) if type(args[0]) in (str, bytes) else 1


def _found_in(args: Sequence[Any], result: Any) -> int:
    return len(args[1]) if isinstance(args[1], list) else 1


def _converted(args: Sequence[Any], result: Any) -> int:
    return _traversal(args, result) if type(args[0]) is not type(result) and type(args[0]) in (str, bytes) else 1


def _selector(args: Sequence[Any], result: Any) -> int:
    size = _size(args[1])
    return LIST + _scaled(size, _TRAVERSAL) + _scaled(_scaled(size, 0.5), LIST + STRUCT)


def _address(args: Sequence[Any], result: Any) -> int:
    return 1 if type(args[0]) is dict else _traversal(args, result)


def _contains_address(args: Sequence[Any], result: Any) -> int:
    read = _scaled(_size(args[1]), _TRAVERSAL) if type(args[1]) is str else 0
    return _scaled(2 * _size(args[0]), _TRAVERSAL) + read


def _contains_range(args: Sequence[Any], result: Any) -> int:
    return _contains_address(args, result) + _scaled(_size(args[0]), _TRAVERSAL) + 1


def _validated(args: Sequence[Any], result: Any) -> int:
    return _scaled(1 + _size(args[1]), _TRAVERSAL) * _scaled(formats.pattern_size(args[0]), _PATTERN)


def _pairwise(args: Sequence[Any], result: Any) -> int:
    return 1 + _size(args[0]) * _size(args[1])


def _made(args: Sequence[Any], result: Any) -> int:
    """A new list, item by item."""
    return 1 + LIST + len(result)


def _pairs_of_items(args: Sequence[Any], result: Any) -> int:
    """A new list, with each item compared with each."""
    items = args[0]
    of_text = len(items[0]) * _TRAVERSAL if items and isinstance(items[0], str) else 0
    return 1 + LIST + int(len(items) ** 2 * (2 + of_text))


CALL_COSTS: dict[str, CallCost] = {
    "check": lambda args, result: _AUTHORIZATION_CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _items),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _traversal),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _traversal),
    **dict.fromkeys(("startsWith", "endsWith", "strings.quote", "format"), _traversal),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _double_traversal),
    **dict.fromkeys(("find", "findAll", "matches"), _searched),
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    **dict.fromkeys(("@in", "_in_"), _found_in),
    **dict.fromkeys(("string", "bytes"), _converted),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _pairwise),
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys"), _pairs_of_items),
    **dict.fromkeys(("reverse", "lists.range", "slice", "flatten"), _made),
    "_+_": _added,
    "contains": _contained,
    "join": _joined,
    "ip": _address,
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    "validate": _validated,
}
