"""Plain YAML scalars with the meaning of Go's yaml.v2, and numbers in Go's notation.

The parser resolves scalars with these rules; the emitter quotes strings that would resolve to another type. YAML 1.1's
booleans (`yes`, `on`, `n`), octal numbers with a leading zero and underscores in numbers are supported; base 60 is not.
"""

from __future__ import annotations

import re
import struct
from calendar import monthrange
from decimal import Decimal
from enum import Enum
from math import inf, isnan, nan
from typing import Any

from pilothouse.machinery.gofmt import quote


class Tag(Enum):
    STRING = "!!str"
    BOOL = "!!bool"
    INT = "!!int"
    FLOAT = "!!float"
    NULL = "!!null"
    TIMESTAMP = "!!timestamp"
    MERGE = "!!merge"


_WORDS: dict[str, tuple[Tag, Any]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], (Tag.BOOL, True)),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], (Tag.BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (Tag.NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (Tag.FLOAT, nan)),
    **{sign + word: (Tag.FLOAT, inf) for word in (".inf", ".Inf", ".INF") for sign in ("", "+")},
    **{f"-{word}": (Tag.FLOAT, -inf) for word in (".inf", ".Inf", ".INF")},
    "<<": (Tag.MERGE, "<<"),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_MOST_DIGITS = 64
_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:[.,][0-9]+)?"
_TIMESTAMP = re.compile(rf"{_DAY}(?:[Tt]{_CLOCK}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})|(?P<spaced> .*))?")
_SPACED = re.compile(rf" +{_CLOCK}")
_LIMITS = {"month": (1, 12), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def resolve(text: str) -> tuple[Tag, Any]:
    """Return tag and value of a plain scalar."""
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    if first == "." and (number := _float(text)) is not None:
        return Tag.FLOAT, number
    if first in "+-0123456789":
        if _is_timestamp(text):
            return Tag.TIMESTAMP, text
        plain = text.replace("_", "")
        integer = _integer(plain)
        if integer is not None:
            return Tag.INT, integer
        number = _float(plain)
        return (Tag.STRING, text) if number is None else (Tag.FLOAT, number)
    return Tag.STRING, text


def _integer(text: str) -> int | None:
    """Return the integer within 64 bits, signed or unsigned, else None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    base, digits = next((base, match[name]) for name, base in _BASES.items() if match[name] is not None)
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(match["sign"] + digits, base)
    return number if -(1 << 63) <= number < 1 << (63 if match["sign"] else 64) else None


def _float(text: str) -> float | None:
    if not _FLOAT.fullmatch(text):
        return None
    number = float(text)
    return None if number in (inf, -inf) else number


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    parts = match.groupdict()
    if match["spaced"] is not None:
        spaced = _SPACED.fullmatch(match["spaced"])
        if spaced is None:
            return False
        parts |= spaced.groupdict()
    if not all(low <= int(parts[name]) <= high for name, (low, high) in _LIMITS.items() if parts.get(name)):
        return False
    return 1 <= int(parts["day"]) <= monthrange(int(parts["year"]) % 400 + 400, int(parts["month"]))[1]


def go_float(number: float, *, single: bool = False) -> str:
    """Return strconv's shortest 'g' format, `1.5e+06`. single: of the nearest 32-bit float, with YAML's infinities."""
    if isnan(number):
        return ".nan" if single else "NaN"
    if number in (inf, -inf):
        sign = "-" if number < 0 else "" if single else "+"
        return f"{sign}.inf" if single else f"{sign}Inf"
    text = _shortest_single(number) if single else repr(number)
    negative, digits, exponent = Decimal(text).normalize().as_tuple()
    if digits == (0,):
        return "-0" if negative else "0"
    assert isinstance(exponent, int)
    return ("-" if negative else "") + _general("".join(map(str, digits)), len(digits) + exponent)


def _general(digits: str, point: int) -> str:
    """`point`: number of digits before the decimal point."""
    if not -4 <= point - 1 < 6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{fraction}e{point - 1:+03d}"
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
    return f"{whole}.{fraction}" if fraction else whole


def _shortest_single(number: float) -> str:
    try:
        nearest = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return repr(number)
    for precision in range(1, 10):
        text = f"{nearest:.{precision}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == nearest:
            return text
    return repr(nearest)


def go_syntax(value: Any) -> str:
    """Return Go's %#v format of a value from YAML."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    if isinstance(value, dict):
        members = (f"{go_syntax(key)}:{go_syntax(member)}" for (_, key), member in value.items())
        return "map[interface {}]interface {}{" + ", ".join(members) + "}"
    return str(value) if isinstance(value, int) else go_float(value)
