"""resource.Quantity: exact amounts with a suffix, as requests, limits and capacities have them.

    q = parse_quantity("1.5Gi") + parse_quantity("512Mi")
    str(q) → "2Gi"      q == parse_quantity("2048Mi") → True

Quantities are immutable; equal amounts are equal and hash alike, however they are written.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pilothouse.machinery import quantity_notation as notation
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.quantity_notation import MAX_INT64, Format, QuantityError

MAX_SPAN = 250
"""How many decimal places two amounts may be apart; further away, the smaller one does not change the sum."""
MAX_WHOLE = 4_500
"""How many zeros of an amount are ever written out: for a sum, those between the longest text and MAX_SPAN beyond."""
_MAX_BITS = 13_200
"""Length of a sum: fewer decimal digits than a text may have, so that a printed sum can be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`digits` times ten to the `power`. Digits have no trailing zeros, and zero has the power 0."""

    digits: int
    power: int = 0
    format: Format = Format.DECIMAL_SI
    text: str = ""
    """As it was written, if that is how it prints."""

    def __post_init__(self) -> None:
        reduced = notation.without_factors(self.digits, 10)
        object.__setattr__(self, "digits", reduced.number)
        object.__setattr__(self, "power", self.power + reduced.times if reduced.number else 0)

    def __str__(self) -> str:
        return self.text or notation.write(self.digits, self.power, self.format)

    def __bool__(self) -> bool:
        return self.digits != 0

    def __hash__(self) -> int:
        return hash((self.digits, self.power))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.digits == other.digits and self.power == other.power

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __neg__(self) -> Quantity:
        return replace(self, digits=-self.digits, text="")

    def __add__(self, other: Quantity) -> Quantity:
        """The sum in the format of the first that is not zero."""
        if not self or not other:
            return replace(self or other, text="")
        if abs(self._magnitude - other._magnitude) > MAX_SPAN:
            larger = self if self._magnitude > other._magnitude else other
            return replace(larger, format=self.format, text="")
        low = min(self.power, other.power)
        digits = self._digits_at(low) + other._digits_at(low)
        if (surplus := (digits.bit_length() - _MAX_BITS) * 3 // 10) > 0:
            digits, low = -(-digits // notation.ten_to(surplus)), low + surplus
        return Quantity(digits, low, self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __mul__(self, factor: int) -> Quantity:
        return replace(self, digits=self.digits * factor, text="")

    def __float__(self) -> float:
        return float(f"{self.digits}e{self.power}")

    @property
    def sign(self) -> int:
        return (self.digits > 0) - (self.digits < 0)

    @property
    def fraction(self) -> Fraction:
        return Fraction(self._digits_at(0)) if self.power >= 0 else Fraction(self.digits, 10**-self.power)

    def compare(self, other: Quantity) -> int:
        """Negative, zero or positive, as this is less than, equal to or greater than the other."""
        if self.sign != other.sign or not self:
            return self.sign - other.sign
        if self._magnitude != other._magnitude:
            return self.sign if self._magnitude > other._magnitude else -self.sign
        low = min(self.power, other.power)
        mine, its = self._digits_at(low), other._digits_at(low)
        return (mine > its) - (mine < its)

    def value(self) -> int:
        """Whole units, rounded away from zero; the nearest int64 when there are too many."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        return self.scaled_value(-3)

    def overflowing_milli_value(self) -> int:
        """As `milli_value`, but what is too much for an int64 wraps around, as it does in upstream's checks."""
        if self.power > 64:
            return 0  # as many factors of two as there are bits
        size = self.sign * notation.rounded_up(abs(self.digits), self.power, -3)
        return (size + MAX_INT64 + 1) % (1 << 64) - MAX_INT64 - 1

    def scaled_value(self, scale: int) -> int:
        """Units of ten to the `scale`, rounded away from zero; the nearest int64 when there are too many."""
        if self._magnitude - scale > 19:
            size = MAX_INT64
        else:
            size = min(notation.rounded_up(abs(self.digits), self.power, scale), MAX_INT64)
        return self.sign * size

    def round_up(self, scale: int) -> Quantity:
        """The amount with no digits below ten to the `scale`, rounded away from zero."""
        if self.power >= scale:
            return self
        digits = notation.rounded_up(abs(self.digits), self.power, scale)
        return Quantity(self.sign * digits, scale, self.format)

    @property
    def _magnitude(self) -> int:
        """The number of digits before the point."""
        return notation.digit_count(abs(self.digits)) + self.power

    def _digits_at(self, power: int) -> int:
        if self.power - power > MAX_WHOLE:
            raise OverflowError(f"{self} is too large to count in units of 1e{power}")
        return self.digits * notation.ten_to(self.power - power) if self.digits else 0


ZERO = Quantity(0)


@bounded_cache(entries=4096, key_bytes=40)
def parse_quantity(text: str) -> Quantity:
    """Raises QuantityError."""
    parts = notation.read(text)
    return Quantity(parts.digits, parts.power, parts.format, parts.text)


def milli_quantity(value: int, form: Format = Format.DECIMAL_SI) -> Quantity:
    return Quantity(value, -3, form)


__all__ = ["ZERO", "Format", "Quantity", "QuantityError", "milli_quantity", "parse_quantity"]
