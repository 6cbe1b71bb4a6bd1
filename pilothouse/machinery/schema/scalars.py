"""Scalars, decoded and printed as in Go. Every function expects a non-null value.

Wrong values raise Mismatch without a reason; `examine` reconstructs Go's message.
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
"""Scalar → smallest positive integer out of range."""


class Mismatch(Exception):
    """The value does not fit its type, or contains an unknown field."""


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
    """Decode a float; Go prints whole floats as integers."""
    if type(value) is int:
        # Only exact documents contain integers of more than 64 bits.
        value = as_float(value)
        if type(value) is int:
            return value
    if isinstance(value, float) and not isinf(value):
        return int(value) if value.is_integer() and abs(value) < 1e18 else float(value)
    raise Mismatch


def base64(value: Any) -> str:
    """Decode base64 with Go's padding and without line breaks. Go also accepts a list of numbers below 256 as
    []byte."""
    if type(value) is list:
        return _encode(_octets(value))
    if type(value) is not str:
        raise Mismatch
    try:
        if _encode(a2b_base64(value)) == value:
            return value
    except (Base64Error, ValueError):
        pass
    # The standard library is more lenient than Go: check every text that does not round-trip.
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
    """Return whether Go decodes the value as a uint8; floats are rejected."""
    return type(value) is int and 0 <= value < 256


def base64_fault(text: str) -> int | None:
    """Return the index at which Go's decoder fails; None for valid base64. Padding is required, line breaks are
    skipped, trailing data is an error."""
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
    """`at`: index of the first "=". Two characters need two "=", three characters need one."""
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
    # A quantity keeps its exponent; a Python float has lost its notation.
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
"""Go's output for unset values; null for all other scalars."""


__all__ = ["QuantityError", "canonical_quantity"]


def canonical_quantity(value: Any) -> str:
    """Return the canonical quantity. Numbers keep their notation, strings are stripped, all other values are
    invalid."""
    if isinstance(value, str):
        return str(parse_quantity(value.strip()))
    return str(parse_quantity(spelling(value) if is_number(value) else "{}"))
