"""CEL's conversions between types."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, Type, UInt, number_text, shown, type_name
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.operators import EARLIEST, INT_MAX, INT_MIN, LATEST, as_int, as_uint
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.durations import DurationError, parse_duration

_EPOCH = datetime(1970, 1, 1)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_WHOLE = re.compile(r"([+-]?)(?=\d)0*+(\d{0,20})", re.ASCII)
_LEADING_ZEROS = re.compile(r"(?<![^+-])0+(?=\d)", re.ASCII)
_REAL = re.compile(
    r"[+-]?(?:(?:\d+(?:_\d+)*)(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?", re.ASCII
)
_HEX_REAL = re.compile(r"[+-]?0[xX]_?[0-9a-fA-F_]*\.?[0-9a-fA-F_]*[pP][+-]?\d+", re.ASCII)
_NAMED_REAL = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_CONVERTED = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def _same(value: Any) -> Any:
    return value


def _unconvertible(target: str, source: str = "string") -> EvaluationFailed:
    return EvaluationFailed(f"type conversion error from '{source}' to '{_CONVERTED.get(target, target)}'")


def _whole(text: str, target: str, least: int, most: int) -> int:
    number = _WHOLE.fullmatch(text)
    if number is None or (target == "uint" and number[1]):
        raise _unconvertible(target)
    value = int(f"{number[1]}0{number[2]}")
    if not least <= value <= most:
        raise _unconvertible(target)
    return value


def _int_of_double(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationFailed("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationFailed("unsigned integer overflow")
    return UInt(int(value))


def _double_of_text(text: str) -> float:
    """Read what Go's ParseFloat reads."""
    if len(text) > 64:
        text = _LEADING_ZEROS.sub("", text, count=1)
    if len(text) > 4096:
        raise _unconvertible("double")
    if _NAMED_REAL.fullmatch(text):
        return math.nan if text.lower().endswith("nan") else float(text)
    if _HEX_REAL.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except (ValueError, OverflowError):
            raise _unconvertible("double") from None
    if _REAL.fullmatch(text) is None or math.isinf(value := float(text.replace("_", ""))):
        raise _unconvertible("double")
    return value


def _bool_of_text(text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _unconvertible("bool")
    return text in _TRUE


def timestamp_of_text(text: str) -> Timestamp:
    found = _TIME.fullmatch(text)
    if found is None:
        raise _unconvertible("timestamp")
    try:
        moment = datetime.fromisoformat(found[1])
    except ValueError:
        raise _unconvertible("timestamp") from None
    offset = 0
    if found[3]:
        if int(found[4]) > 24 or int(found[5]) > 60:
            raise _unconvertible("timestamp")
        offset = (int(found[4]) * 3600 + int(found[5]) * 60) * (1 if found[3] == "+" else -1)
    seconds = int((moment - _EPOCH).total_seconds()) - offset
    nanoseconds = seconds * 10**9 + int((found[2] or "0").ljust(9, "0"))
    if not EARLIEST <= nanoseconds <= LATEST:
        raise _unconvertible("timestamp")
    return Timestamp(nanoseconds, offset)


def _timestamp_of_int(seconds: int) -> Timestamp:
    if not EARLIEST // 10**9 <= seconds <= LATEST // 10**9:
        raise EvaluationFailed("timestamp overflow")
    return Timestamp(seconds * 10**9)


def _duration_of_text(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except DurationError:
        raise _unconvertible("duration") from None


def _duration_of_int(value: int) -> Duration:
    raise _unconvertible("duration", "int")


def text_of(value: Any) -> str:
    """Return string(value)."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return number_text(value)
        case bytes():
            return _text_of_bytes(value)
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return f"{_seconds(value.nanoseconds)}s"
        case Type():
            return value.name
    return str(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationFailed("invalid UTF-8 in bytes, cannot convert to string") from None


def _seconds(nanoseconds: int) -> str:
    """Seconds without an exponent, as far as a double tells them apart."""
    text = f"{nanoseconds / 10**9!r}"
    if "e" not in text:
        return text.removesuffix(".0")
    whole, rest = divmod(abs(nanoseconds), 10**9)
    return ("-" if nanoseconds < 0 else "") + (f"{whole}.{rest:09d}".rstrip("0") if rest else str(whole))


def timestamp_text(value: Timestamp) -> str:
    seconds, rest = divmod(value.nanoseconds, 10**9)
    try:
        moment = (_EPOCH + timedelta(seconds=seconds + value.offset)).isoformat(timespec="seconds")
    except OverflowError:
        moment = (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    if not value.offset:
        return f"{moment}{fraction}Z"
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    return f"{moment}{fraction}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


CONVERSIONS = (
    row("type", "type(A) type(A)", lambda value: Type(type_name(value))),
    row("to_dyn", "dyn(A) dyn", _same),
    row("bool_to_bool", "bool(bool) bool", _same),
    row("string_to_bool", "bool(string) bool", _bool_of_text),
    row("bytes_to_bytes", "bytes(bytes) bytes", _same),
    row(
        "string_to_bytes",
        "bytes(string) bytes",
        str.encode,
        cost=costs.traversal,
        estimate=costs.encoded_estimate,
    ),
    row("double_to_double", "double(double) double", _same),
    row("int64_to_double", "double(int) double", float),
    row("string_to_double", "double(string) double", _double_of_text),
    row("uint64_to_double", "double(uint) double", float),
    row("duration_to_duration", "duration(duration) duration", _same),
    row("int64_to_duration", "duration(int) duration", _duration_of_int),
    row("string_to_duration", "duration(string) duration", _duration_of_text),
    row("int64_to_int64", "int(int) int", _same),
    row("double_to_int64", "int(double) int", _int_of_double),
    row("duration_to_int64", "int(duration) int", lambda value: value.nanoseconds),
    row("string_to_int64", "int(string) int", lambda text: _whole(text, "int", INT_MIN, INT_MAX)),
    row("timestamp_to_int64", "int(timestamp) int", lambda value: value.nanoseconds // 10**9),
    row("uint64_to_int64", "int(uint) int", lambda value: as_int(int(value))),
    row("string_to_string", "string(string) string", _same),
    row("bool_to_string", "string(bool) string", text_of),
    row(
        "bytes_to_string",
        "string(bytes) string",
        text_of,
        cost=costs.traversal,
        estimate=costs.decoded_estimate,
    ),
    row("double_to_string", "string(double) string", text_of),
    row("duration_to_string", "string(duration) string", text_of),
    row("int64_to_string", "string(int) string", shown),
    row("timestamp_to_string", "string(timestamp) string", text_of),
    row("uint64_to_string", "string(uint) string", shown),
    row("timestamp_to_timestamp", "timestamp(timestamp) timestamp", _same),
    row("int64_to_timestamp", "timestamp(int) timestamp", _timestamp_of_int),
    row("string_to_timestamp", "timestamp(string) timestamp", timestamp_of_text),
    row("uint64_to_uint64", "uint(uint) uint", _same),
    row("double_to_uint64", "uint(double) uint", _uint_of_double),
    row("int64_to_uint64", "uint(int) uint", as_uint),
    row("string_to_uint64", "uint(string) uint", lambda text: UInt(_whole(text, "uint", 0, 2**64 - 1))),
)
