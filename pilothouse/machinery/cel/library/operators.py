"""CEL's operators. Integers do not wrap: a result out of range is an error."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.unordered import UnorderedList
from pilothouse.machinery.cel.interpreter.values import MISSING, Duration, Timestamp, UInt, equal, find_entry
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.rows import Row, one, one_estimated, row

INT_MAX, INT_MIN, UINT_MAX = 2**63 - 1, -(2**63), 2**64 - 1
EARLIEST, LATEST = -62135596800 * 10**9, 253402300799 * 10**9 + 999_999_999
_COMPARISONS = {
    "_<_": ("less", operator.lt),
    "_<=_": ("less_equals", operator.le),
    "_>_": ("greater", operator.gt),
    "_>=_": ("greater_equals", operator.ge),
}
_ORDERED = (
    *(("bool", "bool", "bool"), ("int64", "int", "int"), ("int64_double", "int", "double")),
    *(("int64_uint64", "int", "uint"), ("uint64", "uint", "uint"), ("uint64_double", "uint", "double")),
    *(("uint64_int64", "uint", "int"), ("double", "double", "double"), ("double_int64", "double", "int")),
    *(("double_uint64", "double", "uint"), ("string", "string", "string"), ("bytes", "bytes", "bytes")),
    *(("timestamp", "timestamp", "timestamp"), ("duration", "duration", "duration")),
)


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
        raise EvaluationFailed("integer overflow")
    return Duration(nanoseconds)


def as_timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    if not EARLIEST <= nanoseconds <= LATEST:
        raise EvaluationFailed("timestamp overflow")
    return Timestamp(nanoseconds, offset)


def _quotient(a: int, b: int) -> int:
    """Round towards zero."""
    if b == 0:
        raise EvaluationFailed("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    """The remainder has the sign of the dividend."""
    if b == 0:
        raise EvaluationFailed("modulus by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def is_item(item: Any, items: Any) -> bool:
    return any(equal(item, each) for each in items)


def _concatenated(a: list[Any], b: list[Any]) -> list[Any]:
    return a.plus(b) if isinstance(a, UnorderedList) else a + b


def _is_key(key: Any, mapping: dict[Any, Any]) -> bool:
    return find_entry(mapping, key) is not MISSING


def _checked(check: Callable[[int], int], run: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: check(run(int(a), int(b)))


def _order(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Compare numbers of which one is a double as doubles."""

    def run(a: Any, b: Any) -> bool:
        if a != a or b != b:
            raise EvaluationFailed("NaN values cannot be ordered")
        return compare(float(a), float(b))

    return run


def _comparisons() -> Iterator[Row]:
    for function, (name, compare) in _COMPARISONS.items():
        for suffix, left, right in _ORDERED:
            is_text = left in ("string", "bytes")
            yield row(
                f"{name}_{suffix}",
                f"{function}({left}, {right}) bool",
                _order(compare) if "double" in (left, right) else compare,
                cost=costs.compared if is_text else one,
                estimate=costs.comparison_estimate if is_text else one_estimated,
            )


def _subtracted_times(a: Timestamp, b: Timestamp) -> Duration:
    return as_duration(a.nanoseconds - b.nanoseconds)


OPERATORS = (
    row("conditional", "_?_:_(bool, A, A) A"),
    row("logical_and", "_&&_(bool, bool) bool"),
    row("logical_or", "_||_(bool, bool) bool"),
    row("logical_not", "!_(bool) bool", operator.not_),
    row("not_strictly_false", "@not_strictly_false(bool) bool"),
    row("equals", "_==_(A, A) bool", estimate=costs.equality_estimate),
    row("not_equals", "_!=_(A, A) bool", estimate=costs.comparison_estimate),
    row("add_bytes", "_+_(bytes, bytes) bytes", operator.add, cost=costs.added, estimate=costs.added_text_estimate),
    row("add_double", "_+_(double, double) double", operator.add),
    row(
        "add_duration_duration",
        "_+_(duration, duration) duration",
        lambda a, b: as_duration(a.nanoseconds + b.nanoseconds),
    ),
    row(
        "add_duration_timestamp",
        "_+_(duration, timestamp) timestamp",
        lambda a, b: as_timestamp(a.nanoseconds + b.nanoseconds, b.offset),
    ),
    row(
        "add_timestamp_duration",
        "_+_(timestamp, duration) timestamp",
        lambda a, b: as_timestamp(a.nanoseconds + b.nanoseconds, a.offset),
    ),
    row("add_int64", "_+_(int, int) int", _checked(as_int, operator.add)),
    row("add_list", "_+_(list(A), list(A)) list(A)", _concatenated, estimate=costs.added_list_estimate),
    row("add_string", "_+_(string, string) string", operator.add, cost=costs.added, estimate=costs.added_text_estimate),
    row("add_uint64", "_+_(uint, uint) uint", _checked(as_uint, operator.add)),
    row("divide_double", "_/_(double, double) double", _divided),
    row("divide_int64", "_/_(int, int) int", _checked(as_int, _quotient)),
    row("divide_uint64", "_/_(uint, uint) uint", _checked(as_uint, _quotient)),
    row("modulo_int64", "_%_(int, int) int", _checked(as_int, _remainder)),
    row("modulo_uint64", "_%_(uint, uint) uint", _checked(as_uint, _remainder)),
    row("multiply_double", "_*_(double, double) double", operator.mul),
    row("multiply_int64", "_*_(int, int) int", _checked(as_int, operator.mul)),
    row("multiply_uint64", "_*_(uint, uint) uint", _checked(as_uint, operator.mul)),
    row("negate_double", "-_(double) double", operator.neg),
    row("negate_int64", "-_(int) int", lambda a: as_int(-a)),
    row("subtract_double", "_-_(double, double) double", operator.sub),
    row(
        "subtract_duration_duration",
        "_-_(duration, duration) duration",
        lambda a, b: as_duration(a.nanoseconds - b.nanoseconds),
    ),
    row("subtract_int64", "_-_(int, int) int", _checked(as_int, operator.sub)),
    row(
        "subtract_timestamp_duration",
        "_-_(timestamp, duration) timestamp",
        lambda a, b: as_timestamp(a.nanoseconds - b.nanoseconds, a.offset),
    ),
    row("subtract_timestamp_timestamp", "_-_(timestamp, timestamp) duration", _subtracted_times),
    row("subtract_uint64", "_-_(uint, uint) uint", _checked(as_uint, operator.sub)),
    *_comparisons(),
    row("index_list", "_[_](list(A), int) A"),
    row("index_map", "_[_](map(A, B), A) B"),
    row("optional_list_index_int", "_[_](optional_type(list(V)), int) optional_type(V)"),
    row("optional_map_index_value", "_[_](optional_type(map(K, V)), K) optional_type(V)"),
    row("in_list", "@in(A, list(A)) bool", is_item, cost=costs.listed, estimate=costs.listed_estimate),
    row("in_map", "@in(A, map(A, B)) bool", _is_key),
    row("select_optional_field", "_?._(dyn, string) optional_type(V)"),
    row("list_optindex_optional_int", "_[?_](list(V), int) optional_type(V)"),
    row("optional_list_optindex_optional_int", "_[?_](optional_type(list(V)), int) optional_type(V)"),
    row("map_optindex_optional_value", "_[?_](map(K, V), K) optional_type(V)"),
    row("optional_map_optindex_optional_value", "_[?_](optional_type(map(K, V)), K) optional_type(V)"),
)
