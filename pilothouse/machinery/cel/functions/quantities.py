"""Quantities in expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import QuantityError

MARK = "@quantity"


def parse(text: str) -> dict[str, Any]:
    return _marked(parse_quantity(text).fraction)


def is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def fraction(value: dict[str, Any]) -> Fraction:
    return Fraction(value[MARK])


def as_float(value: dict[str, Any]) -> float:
    return float(fraction(value))


def is_integer(value: dict[str, Any]) -> bool:
    return fraction(value).denominator == 1 and abs(fraction(value)) < 2**63


def as_integer(value: dict[str, Any]) -> int:
    if not is_integer(value):
        raise ValueError("cannot convert value to integer")
    return int(fraction(value))


def add(value: dict[str, Any], other: dict[str, Any] | int) -> dict[str, Any]:
    return _marked(fraction(value) + _amount(other))


def subtract(value: dict[str, Any], other: dict[str, Any] | int) -> dict[str, Any]:
    return _marked(fraction(value) - _amount(other))


def _amount(value: dict[str, Any] | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else fraction(value)


def _marked(amount: Fraction) -> dict[str, Any]:
    return {MARK: str(amount)}
