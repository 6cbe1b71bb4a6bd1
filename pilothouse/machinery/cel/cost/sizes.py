"""Arithmetic of estimates: sizes between a least and a most, and costs, neither of which overflows."""

from __future__ import annotations

import math

from pilothouse.machinery.dataclass import dataclass

LIMITLESS = 2**64 - 1

TRAVERSAL = 0.1
"""The cost of a character that is looked at once."""
PATTERN = 0.25
"""The cost of a character in a regular expression."""


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


def capped(amount: int) -> int:
    return min(amount, LIMITLESS)


def scaled(amount: int, factor: float) -> int:
    """Rounded up."""
    product = float(amount) * factor
    return LIMITLESS if product >= 2.0**64 else capped(math.ceil(product))


def total(*costs: int) -> int:
    return capped(sum(costs))


def product(a: int, b: int) -> int:
    return capped(a * b)
