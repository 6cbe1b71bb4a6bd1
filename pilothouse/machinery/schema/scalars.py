"""Leaf values as Go reads and prints them again. Each function takes a value that is not null.

A wrong value raises Mismatch, which says nothing more: `examine` finds out what Go would have said.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from math import isinf
from typing import Any

from pilothouse.machinery.codec.document import as_float, is_number, spelling
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import QuantityError
from pilothouse.machinery.schema.gotime import TimeError, canonical_micro_time, canonical_time
from pilothouse.machinery.schema.nodes import Scalar

_ALPHABET_AND_NEWLINES = re.compile(rb"[A-Za-z0-9+/\r\n]*+")
_NEWLINES = b"\r\n"

INTEGERS = {Scalar.INT32: 0x8000_0000, Scalar.INT64: 0x8000_0000_0000_0000}
"""The smallest positive number that does not fit."""


class Mismatch(Exception):
    """The value does not fit its type, or holds a field that its type does not have."""


def string(value: Any) -> str:
    if type(value) is str:
        return value
    raise Mismatch


def boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise Mismatch


def int32(value: Any) -> int:
    if type(value) is int and -0x8000_0000 <= value < 0x8000_0000:
        return value
    raise Mismatch


def int64(value: Any) -> int:
    if type(value) is int and -0x8000_0000_0000_0000 <= value < 0x8000_0000_0000_0000:
        return value
    raise Mismatch


def float64(value: Any) -> int | float:
    """Go prints a float without a fraction as an integer."""
    if type(value) is int:
        # Only a document read exactly has integers of more than 64 bits.
        value = as_float(value)
        if type(value) is int:
            return value
    if isinstance(value, float) and not isinf(value):
        return int(value) if value.is_integer() and abs(value) < 1e18 else float(value)
    raise Mismatch


def base64(value: Any) -> str:
    """Base64 with Go's padding and no line breaks. A list of numbers below 256 is []byte too."""
    if type(value) is list:
        return _encode(_octets(value))
    if type(value) is not str:
        raise Mismatch
    try:
        if _encode(a2b_base64(value)) == value:
            return value
    except (Base64Error, ValueError):
        pass
    # The library forgives more than Go does, so what it would write otherwise is looked at closely.
    if base64_fault(value) is not None:
        raise Mismatch
    return _encode(a2b_base64(value))


def _encode(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _octets(values: list[Any]) -> bytes:
    if not all(value is None or is_octet(value) for value in values):
        raise Mismatch
    return bytes(value or 0 for value in values)


def is_octet(value: Any) -> bool:
    """Whether Go reads the value as a uint8: not where it was written as a float."""
    return type(value) is int and 0 <= value < 256


def base64_fault(text: str) -> int | None:
    """Where Go's decoder stops, if it does: it wants padding, skips line breaks, and allows nothing after the end."""
    data = text.encode("utf-8", "surrogatepass")
    match = _ALPHABET_AND_NEWLINES.match(data)
    at = match.end() if match else 0
    filled = (at - data.count(b"\n", 0, at) - data.count(b"\r", 0, at)) % 4
    if at < len(data):
        return _padding_fault(data, at, filled) if data[at] == ord("=") else at
    return len(data) - filled if filled else None


def illegal_base64(fault: int) -> str:
    return f"illegal base64 data at input byte {fault}"


def _padding_fault(data: bytes, at: int, filled: int) -> int | None:
    """`at` is the first "="; two are wanted after two characters, one after three."""
    if filled < 2:
        return at
    rest = _skip_newlines(data, at + 1)
    if filled == 2:
        if rest == len(data):
            return rest
        if data[rest] != ord("="):
            return rest - 1
        rest = _skip_newlines(data, rest + 1)
    return rest if rest < len(data) else None


def _skip_newlines(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _NEWLINES:
        at += 1
    return at


def time(value: Any) -> str | None:
    try:
        return canonical_time(string(value))
    except TimeError:
        raise Mismatch from None


def micro_time(value: Any) -> str | None:
    try:
        return canonical_micro_time(string(value))
    except TimeError:
        raise Mismatch from None


def int_or_string(value: Any) -> int | str:
    return value if type(value) is str else int32(value)


def quantity(value: Any) -> str:
    # A quantity keeps its exponent, and a float no longer knows whether it was written with one.
    if type(value) is float:
        raise Mismatch
    try:
        return canonical_quantity(value)
    except QuantityError:
        raise Mismatch from None


DECODERS: dict[Scalar, Callable[[Any], Any]] = {
    Scalar.STRING: string,
    Scalar.BOOL: boolean,
    Scalar.INT32: int32,
    Scalar.INT64: int64,
    Scalar.FLOAT64: float64,
    Scalar.BYTES: base64,
    Scalar.TIME: time,
    Scalar.MICRO_TIME: micro_time,
    Scalar.QUANTITY: quantity,
    Scalar.INT_OR_STRING: int_or_string,
}

ZEROS: dict[Scalar, Any] = {
    Scalar.STRING: "",
    Scalar.BOOL: False,
    Scalar.INT32: 0,
    Scalar.INT64: 0,
    Scalar.FLOAT64: 0,
    Scalar.QUANTITY: "0",
    Scalar.INT_OR_STRING: 0,
}
"""What Go prints for a value that was never set; null for those that are not here."""


__all__ = ["QuantityError", "canonical_quantity"]


def canonical_quantity(value: Any) -> str:
    """A number is read as it is spelled, a string without the spaces around it; nothing else is a quantity."""
    if isinstance(value, str):
        return str(parse_quantity(value.strip()))
    return str(parse_quantity(spelling(value) if is_number(value) else "{}"))
