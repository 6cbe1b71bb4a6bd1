"""Quantities as Go reads them from JSON and prints them again."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.codec.document import is_number, spelling
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import QuantityError

__all__ = ["QuantityError", "canonical_quantity"]


def canonical_quantity(value: Any) -> str:
    """A number is read as it is spelled, a string without the spaces around it; nothing else is a quantity."""
    if isinstance(value, str):
        return str(parse_quantity(value.strip()))
    return str(parse_quantity(spelling(value) if is_number(value) else "{}"))
