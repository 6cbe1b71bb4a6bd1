"""Quantities. Whether an amount is an integer depends on how it was written: 5 is, 5000m is not."""

from __future__ import annotations

import re
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.network import is_reading
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.quantity import Quantity as Amount
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import Format, QuantityError

_PARTS = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENTS = dict(zip(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), range(-9, 19, 3), strict=True))
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", start=1)}


@dataclass(frozen=True, slots=True)
class Quantity:
    cel_type = "kubernetes.Quantity"

    amount: Amount
    scale: int | None
    """Power of ten of upstream's 64-bit representation; None if upstream needs arbitrary precision."""
    is_computed: bool = False
    """Upstream cannot compare another quantity with a sum or difference on its right side."""

    def __str__(self) -> str:
        return str(self.amount)

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not Quantity or other.is_computed:
            raise EvaluationFailed("no such overload")
        return self.amount == other.amount

    def integer(self) -> int | None:
        if self.scale is None or self.scale < 0 or self.amount.power > 20:
            return None
        value = int(self.amount.fraction)
        return value if -(2**63) <= value < 2**63 else None


def parse(text: str) -> Quantity:
    """Raises EvaluationFailed."""
    try:
        amount = parse_quantity(text)
    except QuantityError as error:
        raise EvaluationFailed(str(error)) from None
    return Quantity(amount, _scale(text, amount))


def _scale(text: str, amount: Amount) -> int | None:
    found = _PARTS.fullmatch(text)
    assert found is not None
    whole, fraction, suffix = found[1] or "", found[2] or "", found[3]
    if suffix in _BINARY:
        fits = not fraction and 15 - len(whole) - _BINARY[suffix] * 3 // 10 - 1 >= 0
        return 0 if fits else None
    exponent = _EXPONENTS.get(suffix)
    if exponent is None:
        exponent = int(suffix[1:])
    scale = exponent - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


def _sum(one: Quantity, other: Quantity, *, sign: int) -> Quantity:
    amount = one.amount + other.amount if sign > 0 else one.amount - other.amount
    if one.scale is None or other.scale is None:
        return Quantity(amount, None, is_computed=True)
    if not one.amount or not other.amount:
        scale = other.scale if not one.amount else one.scale
    else:
        scale = min(one.scale, other.scale)
    units = amount.fraction * 10**-scale if scale <= 0 else amount.fraction / 10**scale
    fits = abs(units) < 2**63
    return Quantity(amount, scale if fits else None, is_computed=True)


def _of_int(value: int) -> Quantity:
    return Quantity(Amount(value, 0, Format.DECIMAL_EXPONENT), 0)


def _as_integer(quantity: Quantity) -> int:
    value = quantity.integer()
    if value is None:
        raise EvaluationFailed("cannot convert value to integer")
    return value


def _as_float(quantity: Quantity) -> float:
    """Upstream multiplies with a power of ten, which rounds twice."""
    if quantity.scale is None:
        return float(quantity.amount)
    scale = quantity.scale
    units = quantity.amount.fraction * 10**-scale if scale <= 0 else quantity.amount.fraction / 10**scale
    return float(units) if scale == 0 else float(int(units)) * float(f"1e{scale}")


def _compare(a: Quantity, b: Quantity) -> int:
    order = a.amount.compare(b.amount)
    return (order > 0) - (order < 0)


QUANTITIES = (
    row(
        "string_to_quantity",
        "quantity(string) Quantity",
        parse,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row(
        "is_quantity_string",
        "isQuantity(string) bool",
        is_reading(parse),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row("quantity_sign", "sign(Quantity) int", lambda quantity: quantity.amount.sign),
    row("quantity_is_greater_than", "Quantity -> isGreaterThan(Quantity) bool", lambda a, b: _compare(a, b) > 0),
    row("quantity_is_less_than", "Quantity -> isLessThan(Quantity) bool", lambda a, b: _compare(a, b) < 0),
    row("quantity_compare_to", "Quantity -> compareTo(Quantity) int", _compare),
    row("quantity_get_float", "Quantity -> asApproximateFloat() double", _as_float),
    row("quantity_get_int", "Quantity -> asInteger() int", _as_integer),
    row("quantity_is_integer", "Quantity -> isInteger() bool", lambda quantity: quantity.integer() is not None),
    row("quantity_add", "Quantity -> add(Quantity) Quantity", lambda a, b: _sum(a, b, sign=1)),
    row("quantity_add_int", "Quantity -> add(int) Quantity", lambda a, b: _sum(a, _of_int(b), sign=1)),
    row("quantity_sub", "Quantity -> sub(Quantity) Quantity", lambda a, b: _sum(a, b, sign=-1)),
    row("quantity_sub_int", "Quantity -> sub(int) Quantity", lambda a, b: _sum(a, _of_int(b), sign=-1)),
)
