"""Quantity: exact amounts with a suffix, as in requests, limits and capacities (resource.Quantity).

    q = parse_quantity("1.5Gi") + parse_quantity("512Mi")
    str(q) → "2Gi"      q == parse_quantity("2048Mi") → True

Quantities are immutable. Equal amounts are equal and hash alike, in any notation.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pilothouse.machinery import quantity_notation as notation
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.quantity_notation import MAX_INT64, Format, QuantityError

MAX_SPAN = 250
"""Maximum difference in decimal places; beyond it the smaller amount does not change a sum."""
MAX_WHOLE = 4_500
"""Maximum zeros written out: for a sum, the zeros between the longest text and MAX_SPAN beyond."""
_MAX_BITS = 13_200
"""Maximum bits of a sum: fewer decimal digits than a text may have, so that a printed sum can be parsed."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`digits` × 10^`power`. Digits have no trailing zeros; zero has power 0."""

    digits: int
    power: int = 0
    format: Format = Format.DECIMAL_SI
    text: str = ""
    """Original text, if it is the canonical form."""

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
        """Return the sum in the format of the first operand that is not zero."""
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
        """Return a negative number, zero or a positive number if this is less than, equal to or greater than
        `other`."""
        if self.sign != other.sign or not self:
            return self.sign - other.sign
        if self._magnitude != other._magnitude:
            return self.sign if self._magnitude > other._magnitude else -self.sign
        low = min(self.power, other.power)
        mine, theirs = self._digits_at(low), other._digits_at(low)
        return (mine > theirs) - (mine < theirs)

    def value(self) -> int:
        """Return whole units, rounded away from zero and limited to int64."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        return self.scaled_value(-3)

    def overflowing_milli_value(self) -> int:
        """As `milli_value`, but overflow of int64 wraps around, as in upstream's checks."""
        if self.power > 64:
            return 0  # 10^power has at least 64 factors of two
        size = self.sign * notation.rounded_up(abs(self.digits), self.power, -3)
        return wrapped_int64(size)

    def scaled_value(self, scale: int) -> int:
        """Return units of 10^`scale`, rounded away from zero and limited to int64."""
        if self._magnitude - scale > 19:
            size = MAX_INT64
        else:
            size = min(notation.rounded_up(abs(self.digits), self.power, scale), MAX_INT64)
        return self.sign * size

    def round_up(self, scale: int) -> Quantity:
        """Return the amount without digits below 10^`scale`, rounded away from zero."""
        if self.power >= scale:
            return self
        digits = notation.rounded_up(abs(self.digits), self.power, scale)
        return Quantity(self.sign * digits, scale, self.format)

    @property
    def _magnitude(self) -> int:
        """Number of digits before the decimal point."""
        return notation.digit_count(abs(self.digits)) + self.power

    def _digits_at(self, power: int) -> int:
        if self.power - power > MAX_WHOLE:
            raise OverflowError(f"{self} is too large to count in units of 1e{power}")
        return self.digits * notation.ten_to(self.power - power) if self.digits else 0


ZERO = Quantity(0)


def wrapped_int64(number: int) -> int:
    """Return the int64 with the lowest 64 bits of `number`, the result of an overflow in Go."""
    return (number + MAX_INT64 + 1) % (1 << 64) - MAX_INT64 - 1


@bounded_cache(entries=4096, key_bytes=40)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity. Raises QuantityError."""
    parts = notation.read(text)
    return Quantity(parts.digits, parts.power, parts.format, parts.text)


def milli_quantity(value: int, form: Format = Format.DECIMAL_SI) -> Quantity:
    return Quantity(value, -3, form)


__all__ = ["ZERO", "Format", "Quantity", "QuantityError", "milli_quantity", "parse_quantity"]
