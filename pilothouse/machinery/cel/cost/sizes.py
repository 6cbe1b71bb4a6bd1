"""Arithmetic of estimates: sizes between a least and a most, and costs, neither of which overflows."""

from __future__ import annotations

import math

from pilothouse.machinery.cel.front.types import DYN, Type
from pilothouse.machinery.dataclass import dataclass

LIMITLESS = 2**64 - 1

TRAVERSAL = 0.1
"""Cost of visiting one character."""
PATTERN = 0.25
"""Cost of one character of a regular expression."""


@dataclass(frozen=True, slots=True)
class Size:
    least: int
    most: int

    def __add__(self, other: Size) -> Size:
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def __mul__(self, other: Size) -> Size:
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def __or__(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = Size(0, LIMITLESS)
ONE = Size(1, 1)


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of a call whose cost is estimated."""

    size: Size = UNKNOWN
    type: Type = DYN
    item: Size | None = None
    """Size of the items of a list; None for other types, and for lists without a declared element type."""
    number: int | None = None
    """Value of an integer literal."""
    is_sized: bool = True
    """Whether the size is known from the expression or the schema."""


@dataclass(frozen=True, slots=True)
class CallCost:
    cost: int
    result: Size | None = None
    """Size of the result."""


ONE_COST = CallCost(1)


def capped(amount: int) -> int:
    return min(amount, LIMITLESS)


def scaled(amount: int, factor: float) -> int:
    """Multiply and round up."""
    product = float(amount) * factor
    return LIMITLESS if product >= 2.0**64 else capped(math.ceil(product))


def total(*costs: int) -> int:
    return capped(sum(costs))


def product(a: int, b: int) -> int:
    return capped(a * b)
