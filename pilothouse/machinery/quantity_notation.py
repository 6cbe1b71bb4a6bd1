"""Notation of quantities: `1.5`, `100m`, `2Gi`, `12e6`, and the canonical form of each amount.

An amount is `digits` × 10^`power`; both are integers.
"""

from __future__ import annotations

import math
import re
from enum import Enum

from pilothouse.machinery.dataclass import dataclass

NANO = -9
MAX_INT64 = 2**63 - 1

_FORM = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]{1,19})", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power // 10: suffix for suffix, power in _BINARY.items()}
_MAX_DIGITS = 4000
_NEAR_POWER = 1e-9
"""Distance of a logarithm from an integer within which floating point is not decisive."""

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is not a quantity; the message is upstream's."""


class Format(Enum):
    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


@dataclass(frozen=True, slots=True)
class Notation:
    """Parts of a quantity's text. `text` is set if upstream prints the original text again."""

    digits: int
    power: int
    format: Format
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Suffix:
    format: Format
    exponent: int


def read(text: str) -> Notation:
    """Parse the text. Rounds up to nano units and limits binary amounts to int64. Raises QuantityError."""
    match = _FORM.fullmatch(text)
    if not text or match is None:
        raise QuantityError(FORMAT_WRONG)
    sign, whole, fraction, suffix_text = match[1], match[2] or "0", match[3] or "", match[4]
    suffix = _suffix(suffix_text)
    all_digits = whole + fraction
    if len(all_digits) > _MAX_DIGITS or _has_no_digits(match, suffix):
        raise QuantityError(NUMERIC_WRONG)
    digits, power = int(all_digits), -len(fraction)
    if suffix.format is Format.BINARY_SI:
        digits <<= suffix.exponent
    else:
        power += suffix.exponent
    original = text if _is_canonical(whole, fraction, suffix) else ""
    return _bounded(digits, power, suffix.format, sign=-1 if sign == "-" else 1, text=original)


def write(digits: int, power: int, form: Format) -> str:
    """Return the canonical text of an amount."""
    if not digits:
        return "0"
    if form is Format.BINARY_SI and (
        (abs(digits) < 1024 * 10**-power if power < 0 else power < 4 and abs(digits) * 10**power < 1024) or power < 0
    ):
        form = Format.DECIMAL_SI
    if form is Format.BINARY_SI and power > -NANO and power + digit_count(abs(digits)) > _MAX_DIGITS:
        form = Format.DECIMAL_EXPONENT  # the zeros would not fit into memory
    if form is Format.BINARY_SI:
        reduced = without_factors(digits * 10**power, 1024)
        return f"{reduced.number}{_BINARY_SUFFIX.get(reduced.times, '')}"
    if digit_count(abs(digits)) + power % 3 > _MAX_DIGITS:
        return f"{digits}e{power}"  # more digits could not be parsed again
    digits *= 10 ** (power % 3)
    power -= power % 3
    if form is Format.DECIMAL_SI:
        # Beyond the largest suffix, upstream writes no suffix.
        return f"{digits}{_DECIMAL_SUFFIX.get(power, '')}"
    return f"{digits}e{power}" if power else str(digits)


@dataclass(frozen=True, slots=True)
class Reduced:
    """Number divided by a factor as often as possible."""

    number: int
    times: int


def without_factors(number: int, factor: int) -> Reduced:
    """Divide by `factor`, its square and so on, recursively: few divisions for any number of zeros."""
    if not number or number % factor:
        return Reduced(number, 0)
    squared = without_factors(number // factor, factor * factor)
    rest, times = squared.number, 2 * squared.times + 1
    return Reduced(rest // factor, times + 1) if rest % factor == 0 else Reduced(rest, times)


def rounded_up(digits: int, power: int, target: int) -> int:
    """Return a positive amount in units of 10^`target`, rounded up."""
    if power >= target:
        return digits * ten_to(power - target)
    shift = target - power
    if shift > digit_count(digits):
        return 1 if digits else 0
    return -(-digits // ten_to(shift))


def digit_count(number: int) -> int:
    """Return the number of decimal digits of a positive number. Avoids str(), which takes 100 µs for thousands of
    digits."""
    if number > MAX_INT64:
        logarithm = math.log10(number)
        if abs(logarithm - round(logarithm)) > _NEAR_POWER:
            return math.floor(logarithm) + 1
    return len(str(number))


def ten_to(power: int) -> int:
    size: int = 10**power
    return size


def _suffix(text: str) -> _Suffix:
    if text in _DECIMAL:
        return _Suffix(Format.DECIMAL_SI, _DECIMAL[text])
    if text in _BINARY:
        return _Suffix(Format.BINARY_SI, _BINARY[text])
    match = _EXPONENT.fullmatch(text)
    if match is None or not -(2**63) <= int(match[1]) < 2**63:
        raise QuantityError(SUFFIX_WRONG)
    # Upstream keeps 32 bits of an exponent.
    return _Suffix(Format.DECIMAL_EXPONENT, (int(match[1]) + 2**31) % 2**32 - 2**31)


def _has_no_digits(match: re.Match[str], suffix: _Suffix) -> bool:
    """Report whether the digits are missing where upstream must round; otherwise upstream reads no digits as zero."""
    digits = any(char.isdigit() for char in match[0][: match.start(4)])
    return not digits and suffix.format is not Format.BINARY_SI and suffix.exponent < NANO


def _is_canonical(whole: str, fraction: str, suffix: _Suffix) -> bool:
    """Report whether upstream accepts the text as canonical without closer examination."""
    all_digits = whole + fraction
    if suffix.format is Format.BINARY_SI:
        room = 14 - len(whole) - suffix.exponent * 3 // 10
        return not fraction and room >= 0 and int(whole) & 7 != 0
    scale = suffix.exponent - len(fraction)
    fits = len(all_digits) <= 18 and scale >= NANO
    return fits and scale % 3 == 0 and not all_digits.endswith("000") and all_digits[0] != "0"


def _bounded(digits: int, power: int, form: Format, *, sign: int, text: str) -> Notation:
    if power < NANO:
        digits, power = rounded_up(digits, power, NANO), NANO
    if form is Format.BINARY_SI:
        if digits > MAX_INT64 * 10**-power:
            digits, power = MAX_INT64, 0
        elif 0 < digits < 10**-power:
            form = Format.DECIMAL_SI
    return Notation(sign * digits, power, form, text)
