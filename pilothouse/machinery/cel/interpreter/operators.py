"""CEL's operators. Integers do not wrap: what does not fit is an error."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.machinery.cel.interpreter.dispatch import ANY, Overload
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.unordered import UnorderedList
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, UInt, equal

INT_MAX, INT_MIN, UINT_MAX = 2**63 - 1, -(2**63), 2**64 - 1
EARLIEST, LATEST = -62135596800 * 10**9, 253402300799 * 10**9 + 999_999_999
_NUMBERS = (int, UInt, float)
_ORDERED = (bool, str, bytes, Timestamp, Duration)
_COMPARISONS = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}


def as_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationFailed("integer overflow")
    return value


def as_uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise EvaluationFailed("unsigned integer overflow")
    return UInt(value)


def as_duration(nanoseconds: int) -> Duration:
    if not INT_MIN <= nanoseconds <= INT_MAX:
        raise EvaluationFailed("duration overflow")
    return Duration(nanoseconds)


def as_timestamp(nanoseconds: int) -> Timestamp:
    if not EARLIEST <= nanoseconds <= LATEST:
        raise EvaluationFailed("timestamp overflow")
    return Timestamp(nanoseconds)


def _quotient(a: int, b: int) -> int:
    """Rounded towards zero."""
    if b == 0:
        raise EvaluationFailed("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    """Has the sign of the dividend."""
    if b == 0:
        raise EvaluationFailed("modulus by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _contained(item: Any, items: Any) -> bool:
    return any(equal(item, each) for each in items)


def _concatenated(a: list[Any], b: list[Any]) -> list[Any]:
    return a.plus(b) if isinstance(a, UnorderedList) else a + b


def _is_key(key: Any, mapping: dict[Any, Any]) -> bool:
    try:
        return key in mapping
    except TypeError:
        return False


def _arithmetic() -> Iterator[Overload]:
    whole: dict[str, Callable[[int, int], int]] = {
        "_+_": operator.add,
        "_-_": operator.sub,
        "_*_": operator.mul,
        "_/_": _quotient,
        "_%_": _remainder,
    }
    for name, run in whole.items():
        yield Overload(name, (int, int), _checked(as_int, run))
        yield Overload(name, (UInt, UInt), _checked(as_uint, run))
    for name, compute in {"_+_": operator.add, "_-_": operator.sub, "_*_": operator.mul, "_/_": _divided}.items():
        yield Overload(name, (float, float), compute)
    yield Overload("-_", (int,), lambda a: as_int(-a))
    yield Overload("-_", (float,), operator.neg)
    for kind in (str, bytes):
        yield Overload("_+_", (kind, kind), operator.add)
    yield Overload("_+_", (list, list), _concatenated)


def _checked(check: Callable[[int], int], run: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: check(run(int(a), int(b)))


def _times() -> Iterator[Overload]:
    yield Overload("_+_", (Duration, Duration), lambda a, b: as_duration(a.nanoseconds + b.nanoseconds))
    yield Overload("_+_", (Timestamp, Duration), lambda a, b: as_timestamp(a.nanoseconds + b.nanoseconds))
    yield Overload("_+_", (Duration, Timestamp), lambda a, b: as_timestamp(a.nanoseconds + b.nanoseconds))
    yield Overload("_-_", (Duration, Duration), lambda a, b: as_duration(a.nanoseconds - b.nanoseconds))
    yield Overload("_-_", (Timestamp, Timestamp), lambda a, b: as_duration(a.nanoseconds - b.nanoseconds))
    yield Overload("_-_", (Timestamp, Duration), lambda a, b: as_timestamp(a.nanoseconds - b.nanoseconds))


def _comparisons() -> Iterator[Overload]:
    for name, compare in _COMPARISONS.items():
        for kind in _ORDERED:
            yield Overload(name, (kind, kind), compare)
        for a in _NUMBERS:
            for b in _NUMBERS:
                yield Overload(name, (a, b), compare)


def operators() -> Iterator[Overload]:
    yield from _arithmetic()
    yield from _times()
    yield from _comparisons()
    yield Overload("!_", (bool,), operator.not_)
    for name in ("@in", "_in_"):
        yield Overload(name, (ANY, list), _contained)
        yield Overload(name, (ANY, dict), _is_key)
