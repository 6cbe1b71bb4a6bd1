"""The most that CEL's extensions for lists and sets can cost, found by overload before anything else is asked."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.machinery.cel.cost.call_costs import CallCost, Operand
from pilothouse.machinery.cel.cost.sizes import LIMITLESS, TRAVERSAL, Size, scaled, total

_CALL = 1
_NEW_LIST = 10


def list_call_cost(overload: str, target: Operand | None, args: list[Operand]) -> CallCost | None:
    """None for all that is no function of these extensions. Arguments are not included."""
    estimate = _ESTIMATES.get(overload)
    if estimate is not None:
        return estimate([target, *args] if target is not None else args)
    if overload.endswith("_sort") and target is not None:
        return _sorted(overload, target.size)
    if overload.endswith("_sortByAssociatedKeys"):
        return _sorted(overload, args[0].size)
    return None


def _sorted(overload: str, size: Size) -> CallCost:
    """Every item is compared with every other."""
    is_text = overload.startswith(("list_string_", "list_bytes_"))
    return _new_list(size * size, 2 + TRAVERSAL if is_text else 2)


def _distinct(operands: list[Operand]) -> CallCost:
    return _new_list(operands[0].size * operands[0].size, 2)


def _reverse(operands: list[Operand]) -> CallCost:
    return _new_list(operands[0].size)


def _flatten(operands: list[Operand]) -> CallCost:
    return _new_list(operands[0].size, _number(operands[1], LIMITLESS) if len(operands) > 1 else 1)


def _slice(operands: list[Operand]) -> CallCost:
    """What ends before it begins is limitless, as it is where an unsigned difference overflows."""
    a_list, start, end = operands
    length = (_number(end, a_list.size.most) - _number(start, 0)) & LIMITLESS
    return _new_list(Size(length, length))


def _range(operands: list[Operand]) -> CallCost:
    length = _number(operands[0], LIMITLESS)
    return _new_list(Size(length, length))


def _number(operand: Operand, otherwise: int) -> int:
    return otherwise if operand.number is None else max(operand.number, 0)


def _new_list(size: Size, factor: float = 1) -> CallCost:
    return CallCost(total(scaled(size.most, factor), _CALL, _NEW_LIST), size)


def _of_two_sets(operands: list[Operand]) -> CallCost:
    return CallCost(total((operands[0].size * operands[1].size).most, _CALL))


def _both_ways(operands: list[Operand]) -> CallCost:
    return CallCost(total(scaled((operands[0].size * operands[1].size).most, 2), _CALL))


_ESTIMATES: dict[str, Callable[[list[Operand]], CallCost]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_range": _range,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    "list_sets_contains_list": _of_two_sets,
    "list_sets_intersects_list": _of_two_sets,
    "list_sets_equivalent_list": _both_ways,
}
