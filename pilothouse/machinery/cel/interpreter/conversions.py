"""CEL's conversions between types."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from pilothouse.machinery.cel.interpreter.dispatch import ANY, Overload
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.operators import INT_MAX, INT_MIN, as_int, as_timestamp, as_uint
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, Type, UInt, type_name
from pilothouse.machinery.durations import DurationError, parse_duration

_EPOCH = datetime(1970, 1, 1)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\d*(?:Z|([+-])(\d\d):(\d\d))", re.ASCII | re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_CONVERTED = {
    "int": "int",
    "uint": "uint",
    "double": "double",
    "bool": "bool",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def conversions() -> Iterator[Overload]:
    yield from _to_numbers()
    yield from _to_text()
    yield from _to_times()
    yield Overload("bool", (bool,), _same)
    yield Overload("bool", (str,), _bool_of_text)
    yield Overload("dyn", (ANY,), _same)
    yield Overload("type", (ANY,), lambda value: Type(type_name(value)))


def _to_numbers() -> Iterator[Overload]:
    yield Overload("int", (int,), _same)
    yield Overload("int", (UInt,), lambda value: as_int(int(value)))
    yield Overload("int", (float,), _int_of_double)
    yield Overload("int", (str,), lambda text: _whole(text, "int", INT_MIN, INT_MAX))
    yield Overload("int", (Timestamp,), lambda value: value.nanoseconds // 10**9)
    yield Overload("int", (Duration,), lambda value: value.nanoseconds)
    yield Overload("uint", (UInt,), _same)
    yield Overload("uint", (int,), as_uint)
    yield Overload("uint", (float,), _uint_of_double)
    yield Overload("uint", (str,), lambda text: UInt(_whole(text, "uint", 0, 2**64 - 1)))
    yield Overload("double", (float,), _same)
    yield Overload("double", (int,), float)
    yield Overload("double", (UInt,), float)
    yield Overload("double", (str,), _double_of_text)


def _to_text() -> Iterator[Overload]:
    for kind in (str, int, UInt, float, bool, bytes, Timestamp, Duration):
        yield Overload("string", (kind,), text_of)
    yield Overload("bytes", (bytes,), _same)
    yield Overload("bytes", (str,), str.encode)


def _to_times() -> Iterator[Overload]:
    yield Overload("timestamp", (Timestamp,), _same)
    yield Overload("timestamp", (str,), timestamp_of_text)
    yield Overload("timestamp", (int,), lambda seconds: as_timestamp(seconds * 10**9))
    yield Overload("duration", (Duration,), _same)
    yield Overload("duration", (str,), _duration_of_text)
    yield Overload("duration", (int,), Duration)


def _same(value: Any) -> Any:
    return value


def _unconvertible(target: str) -> EvaluationFailed:
    return EvaluationFailed(f"type conversion error from 'string' to '{_CONVERTED[target]}'")


def _whole(text: str, target: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(text) or (target == "uint" and text[0] in "+-") or not least <= int(text) <= most:
        raise _unconvertible(target)
    return int(text)


def _int_of_double(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationFailed("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationFailed("unsigned integer overflow")
    return UInt(int(value))


def _double_of_text(text: str) -> float:
    try:
        if text != text.strip() or "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise _unconvertible("double") from None


def _bool_of_text(text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _unconvertible("bool")
    return text in _TRUE


def timestamp_of_text(text: str) -> Timestamp:
    found = _TIME.fullmatch(text)
    try:
        assert found is not None
        moment = datetime.fromisoformat(found[1])
    except (AssertionError, ValueError):
        raise _unconvertible("timestamp") from None
    seconds = int((moment - _EPOCH).total_seconds())
    if found[3]:
        seconds -= (int(found[4]) * 3600 + int(found[5]) * 60) * (1 if found[3] == "+" else -1)
    return as_timestamp(seconds * 10**9 + int((found[2] or "0").ljust(9, "0")))


def _duration_of_text(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except DurationError:
        raise _unconvertible("duration") from None


def text_of(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return number_text(value)
        case bytes():
            return _text_of_bytes(value)
        case Timestamp():
            return _timestamp_text(value)
        case Duration():
            return f"{_plain(value.nanoseconds)}s"
    return str(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationFailed("invalid UTF-8 in bytes, cannot convert to string") from None


def number_text(value: float) -> str:
    """As Go's %g has it: 1e+06 for a million and one for 1.0."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    digits, _, exponent = repr(value).partition("e")
    if not exponent and (value == 0 or 1e-4 <= abs(value) < 1e21):
        return digits.removesuffix(".0")
    mantissa, _, power = f"{value:.17e}".partition("e")
    shortest = digits.removesuffix(".0") if exponent else repr(float(mantissa))
    return f"{shortest.removesuffix('.0')}e{int(power):+03d}"


def _plain(nanoseconds: int) -> str:
    """Seconds without an exponent."""
    whole, rest = divmod(abs(nanoseconds), 10**9)
    sign = "-" if nanoseconds < 0 else ""
    return sign + (f"{whole}.{rest:09d}".rstrip("0") if rest else str(whole))


def _timestamp_text(value: Timestamp) -> str:
    seconds, rest = divmod(value.nanoseconds, 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.isoformat(timespec='seconds')}{fraction}Z"
