"""Numbers and values as Go's strconv and fmt print them in YAML and in messages about it."""

from __future__ import annotations

import struct
from decimal import Decimal
from math import inf, isnan
from typing import Any

from pilothouse.machinery.gofmt import quote


def go_float(number: float, *, single: bool = False) -> str:
    """strconv's shortest 'g' form, `1.5e+06`; with `single`, of the nearest 32-bit float, with YAML's infinities."""
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
    """`point` digits stand before the decimal point."""
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
    """Go's %#v of a value that came out of YAML."""
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
