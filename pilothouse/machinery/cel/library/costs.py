"""Costs of calls in upstream's units: as they happen (first part), and the most that they can be (second part)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pilothouse.machinery.cel.cost.sizes import (
    LIMITLESS,
    ONE_COST,
    PATTERN,
    TRAVERSAL,
    CallCost,
    Operand,
    Size,
    product,
    scaled,
    total,
)
from pilothouse.machinery.cel.interpreter.values import Optional, from_key

LIST, MAP, STRUCT = 10, 30, 40
"""Costs of constructing a value."""
_AUTHORIZATION_CHECK = 350_000
_SIZED = (str, bytes, list, dict)


def size_of(value: Any) -> int:
    if isinstance(value, _SIZED):
        return len(value)
    if type(value) is Optional and value.present:
        return size_of(value.value)
    return int(getattr(value, "cel_size", 1))


def traversal(args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(args[0]) * TRAVERSAL)


def double_traversal(args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(args[0]) * 2 * TRAVERSAL)


def joined(args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(result) * 2 * TRAVERSAL)


def searched(args: Sequence[Any], result: Any) -> int:
    return math.ceil((1.0 + size_of(args[0])) * TRAVERSAL) * math.ceil(size_of(args[1]) * PATTERN)


def contained(args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(args[0]) * TRAVERSAL) * math.ceil(size_of(args[1]) * TRAVERSAL)


def compared(args: Sequence[Any], result: Any) -> int:
    return math.ceil(min(size_of(args[0]), size_of(args[1])) * TRAVERSAL)


def added(args: Sequence[Any], result: Any) -> int:
    return math.ceil((size_of(args[0]) + size_of(args[1])) * TRAVERSAL)


def listed(args: Sequence[Any], result: Any) -> int:
    return size_of(args[1])


def items(args: Sequence[Any], result: Any) -> int:
    """Visit everything within a value once."""
    return _visit(args[0])


def _visit(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_visit, value))
    if isinstance(value, dict):
        return sum(_visit(from_key(key)) + _visit(item) for key, item in value.items())
    return 1


def selector(args: Sequence[Any], result: Any) -> int:
    return _selector_cost(size_of(args[1]))


def _selector_cost(size: int) -> int:
    requirements = scaled(scaled(size, 0.5), LIST + STRUCT)
    return total(LIST, scaled(size, TRAVERSAL), requirements)


def authorized(args: Sequence[Any], result: Any) -> int:
    return _AUTHORIZATION_CHECK


def contains_address(args: Sequence[Any], result: Any) -> int:
    return math.ceil(2 * size_of(args[0]) * TRAVERSAL)


def contains_range(args: Sequence[Any], result: Any) -> int:
    return contains_address(args, result) + traversal(args, result) + 1


def contains_address_text(args: Sequence[Any], result: Any) -> int:
    return contains_address(args, result) + math.ceil(size_of(args[1]) * TRAVERSAL)


def contains_range_text(args: Sequence[Any], result: Any) -> int:
    return contains_range(args, result) + math.ceil(size_of(args[1]) * TRAVERSAL)


def validated(args: Sequence[Any], result: Any) -> int:
    pattern: int = args[0].pattern_size
    return math.ceil((1.0 + size_of(args[1])) * TRAVERSAL) * math.ceil(pattern * PATTERN)


def pairs(args: Sequence[Any], result: Any) -> int:
    return 1 + size_of(args[0]) * size_of(args[1])


def pairs_twice(args: Sequence[Any], result: Any) -> int:
    return 1 + 2 * size_of(args[0]) * size_of(args[1])


def allocated(args: Sequence[Any], result: Any) -> int:
    return 1 + LIST + size_of(result)


def flattened(args: Sequence[Any], result: Any) -> int:
    depth = float(args[1]) if len(args) == 2 else 1.0
    return 1 + LIST + min(int(size_of(args[0]) * depth), LIMITLESS)


def self_compared(args: Sequence[Any], result: Any) -> int:
    """Compare each item of the last list with each."""
    values = args[-1]
    factor = 2.0 + (TRAVERSAL if values and isinstance(values[0], str | bytes) else 0)
    return 1 + LIST + int(len(values) ** 2 * factor)


# The most that calls can cost. Operands begin with the receiver.


def traversal_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(operands[0].size.most, TRAVERSAL))


def double_traversal_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(operands[0].size.most, 2 * TRAVERSAL))


def same_size_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(operands[0].size.most, TRAVERSAL), operands[0].size)


def items_estimate(operands: list[Operand]) -> CallCost:
    target = operands[0]
    if not target.type.parameters:
        return traversal_estimate(operands)
    is_text = target.type.parameters[0].kind in ("string", "bytes")
    item = target.item.most if target.item is not None else LIMITLESS
    each = total(1, scaled(item, TRAVERSAL)) if is_text else 1
    return CallCost(product(target.size.most, each))


def split_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size
    limit = operands[2].number if len(operands) > 2 else None
    most = size.most if limit is None else limit & LIMITLESS
    return CallCost(scaled(size.most, 2 * TRAVERSAL), Size(0, most))


def join_estimate(operands: list[Operand]) -> CallCost:
    target, size = operands[0], Size(0, 0)
    if target.type.parameters:
        size = target.size * (target.item if target.item is not None else Size(0, LIMITLESS))
    if len(operands) > 1:
        separators = Size(max(target.size.least - 1, 0), max(target.size.most - 1, 0))
        size = size + operands[1].size * separators
    return CallCost(scaled(size.most, TRAVERSAL), size)


def find_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size
    text = scaled(total(size.most, 1), TRAVERSAL)
    return CallCost(product(text, scaled(operands[1].size.most, PATTERN)), Size(0, size.most))


def matches_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(find_estimate(operands).cost)


def replace_estimate(operands: list[Operand]) -> CallCost:
    size, old, new = (each.size for each in operands[:3])
    count, kept = _replacements(size.most, old.least, shrinks=new.most <= old.least)
    least_count, least_kept = _replacements(size.least, old.most, shrinks=old.most <= new.least)
    result = Size(least_count, count) * new + Size(least_kept, kept)
    return CallCost(scaled(size.most, 2 * TRAVERSAL), result)


def _replacements(size: int, old: int, *, shrinks: bool) -> tuple[int, int]:
    """(how often a text of `old` characters is replaced, how many characters are kept)"""
    if old == 0:
        return capped_increment(size), size
    if shrinks:
        return 0, size
    return math.ceil(float(size) / float(old)), 0


def capped_increment(amount: int) -> int:
    return min(amount + 1, LIMITLESS)


def contains_address_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(32, TRAVERSAL))


def contains_address_text_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(total(scaled(32, TRAVERSAL), scaled(operands[1].size.most, TRAVERSAL)))


def contains_range_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(32, TRAVERSAL) + scaled(16, TRAVERSAL) + 1)


def contains_range_text_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(total(contains_range_estimate(operands).cost, scaled(operands[1].size.most, TRAVERSAL)))


def validate_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(scaled(operands[1].size.most, TRAVERSAL), 128 * PATTERN))


def selector_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(_selector_cost(operands[1].size.most))


def authorized_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(_AUTHORIZATION_CHECK)


def equality_estimate(operands: list[Operand]) -> CallCost:
    """Types of Kubernetes compare in constant time, if both sides have the same type."""
    one, other = operands
    if one.type is other.type:
        name = one.type.name
        if name == "kubernetes.NamedFormat":
            return CallCost(scaled(64, TRAVERSAL))
        if name == "kubernetes.URL":
            return CallCost(scaled(other.size.most if other.is_sized else 1, TRAVERSAL))
        if name in _CONSTANT_EQUALITY:
            return ONE_COST
    return comparison_estimate(operands)


_CONSTANT_EQUALITY = frozenset(
    (
        *("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"),
        *(f"kubernetes.authorization.{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck")),
        "kubernetes.authorization.Decision",
    )
)


def comparison_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(min(operands[0].size.most, operands[1].size.most), TRAVERSAL))


def added_text_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size + operands[1].size
    return CallCost(scaled(size.most, TRAVERSAL), size)


def added_list_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(1, operands[0].size + operands[1].size)


def affix_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(scaled(operands[1].size.most, TRAVERSAL))


def contained_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(product(scaled(operands[0].size.most, TRAVERSAL), scaled(operands[1].size.most, TRAVERSAL)))


def listed_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(operands[1].size.most)


def encoded_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size
    return CallCost(scaled(size.most, TRAVERSAL), Size(size.least, size.most * 4 & LIMITLESS))


def decoded_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size
    return CallCost(scaled(size.most, TRAVERSAL), Size(size.least // 4, size.most))


def quoted_estimate(operands: list[Operand]) -> CallCost:
    size = operands[0].size
    result = Size(size.least + 2 & LIMITLESS, size.most * 2 + 2 & LIMITLESS)
    return CallCost(scaled(size.most, TRAVERSAL), result)


def pairs_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(total((operands[0].size * operands[1].size).most, 1))


def pairs_twice_estimate(operands: list[Operand]) -> CallCost:
    return CallCost(total(scaled((operands[0].size * operands[1].size).most, 2), 1))


def _new_list(size: Size, factor: float = 1) -> CallCost:
    return CallCost(total(scaled(size.most, factor), 1, LIST), size)


def reversed_estimate(operands: list[Operand]) -> CallCost:
    return _new_list(operands[0].size)


def _literal(operand: Operand, otherwise: int) -> int:
    return otherwise if operand.number is None else max(operand.number, 0)


def sliced_estimate(operands: list[Operand]) -> CallCost:
    """A range that ends before it begins is limitless: upstream's difference is unsigned."""
    length = (_literal(operands[2], operands[0].size.most) - _literal(operands[1], 0)) & LIMITLESS
    return _new_list(Size(length, length))


def range_estimate(operands: list[Operand]) -> CallCost:
    length = _literal(operands[0], LIMITLESS)
    return _new_list(Size(length, length))


def flattened_estimate(operands: list[Operand]) -> CallCost:
    depth = _literal(operands[1], LIMITLESS) if len(operands) > 1 else 1
    return _new_list(operands[0].size, depth)


def distinct_estimate(operands: list[Operand]) -> CallCost:
    return _new_list(operands[0].size * operands[0].size, 2)


def sorted_estimate(operands: list[Operand]) -> CallCost:
    size = operands[-1].size
    return _new_list(size * size, 2)


def sorted_text_estimate(operands: list[Operand]) -> CallCost:
    size = operands[-1].size
    return _new_list(size * size, 2 + TRAVERSAL)
