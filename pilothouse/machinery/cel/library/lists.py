"""Functions of lists, sets, maps and optionals."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import NONE, Duration, Optional, UInt, equal, is_zero, read, shown
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.operators import as_duration, as_int, as_uint, is_item
from pilothouse.machinery.cel.library.rows import Row, row

_LONGEST_RANGE = 1_000_000
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationFailed(f"{what}, negative indexes not supported")
    if start > end:
        raise EvaluationFailed(f"{what}, start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationFailed(f"{what}, list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationFailed("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _range(count: int) -> list[int]:
    if count > _LONGEST_RANGE:
        raise EvaluationFailed(f"lists.range({count}) is longer than {_LONGEST_RANGE}")
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not is_item(item, found):
            found.append(item)
    return found


def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        what = "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
        raise EvaluationFailed(f"{what} {len(items)} and {len(keys)} elements respectively")
    if keys and isinstance(keys[0], list | dict | Optional | None):
        raise EvaluationFailed("list elements must be comparable")
    if len({type(key) for key in keys}) > 1:
        raise EvaluationFailed("list elements must have the same type")
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:
        raise EvaluationFailed("list elements must be comparable") from None
    return [items[index] for index in order]


def _covers(items: list[Any], wanted: list[Any]) -> bool:
    return all(is_item(each, items) for each in wanted)


def _require_comparable(items: list[Any]) -> None:
    if any(item is None or isinstance(item, list | dict | Optional) for item in items):
        raise EvaluationFailed("no such overload")


def _is_sorted(items: list[Any]) -> bool:
    _require_comparable(items)
    return all(not _exceeds(a, b) for a, b in pairwise(items))


def _exceeds(a: Any, b: Any) -> bool:
    try:
        return bool(a > b)
    except TypeError:
        return False


def _best(name: str, is_better: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def run(items: list[Any]) -> Any:
        _require_comparable(items)
        if not items:
            raise EvaluationFailed(f"{name} called on empty list")
        return reduce(lambda best, item: item if is_better(item, best) else best, items)

    return run


def _lower(a: Any, b: Any) -> bool:
    return _exceeds(b, a)


def _sum(zero: Any, add: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    def run(items: list[Any]) -> Any:
        if any(type(item) is not type(zero) for item in items):
            raise EvaluationFailed("no such overload")
        return reduce(add, items, zero)

    return run


_SUMS: dict[str, Callable[[list[Any]], Any]] = {
    "int": _sum(0, lambda a, b: as_int(a + b)),
    "uint": _sum(UInt(0), lambda a, b: as_uint(int(a) + int(b))),
    "double": _sum(0.0, operator.add),
    "duration": _sum(Duration(0), lambda a, b: as_duration(a.nanoseconds + b.nanoseconds)),
}


def _index_of(items: list[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if equal(each, item)), -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    backwards = range(len(items) - 1, -1, -1)
    return next((index for index in backwards if equal(items[index], item)), -1)


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationFailed("optional.none() dereference")
    return read(optional.value)


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if type(item) is not Optional:
            raise EvaluationFailed(f"value {shown(item)} is not optional")
    return [each.value for each in items if each.present]


def _traversing(overload: str, signature: str, run: Callable[..., Any]) -> Row:
    return row(overload, signature, run, cost=costs.items, named_cost=True, estimate=costs.items_estimate)


def _of_comparable() -> Iterator[Row]:
    functions: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
        ("isSorted", "is_sorted_bool", "bool", _is_sorted),
        ("max", "max_{0}", "{0}", _best("max", _exceeds)),
        ("min", "min_{0}", "{0}", _best("min", _lower)),
    )
    for function, suffix, result, run in functions:
        for kind in _COMPARABLE:
            signature = f"list({kind}) -> {function}() {result.format(kind)}"
            yield _traversing(f"list_{kind}_{suffix.format(kind)}", signature, run)
    for kind, run in _SUMS.items():
        yield _traversing(f"list_{kind}_sum_{kind}", f"list({kind}) -> sum() {kind}", run)


def _sorting() -> Iterator[Row]:
    """Overloads are named after the types' full names here."""
    full = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
    for kind in _COMPARABLE:
        estimate = costs.sorted_text_estimate if kind in ("string", "bytes") else costs.sorted_estimate
        yield row(
            f"list_{full.get(kind, kind)}_sort",
            f"list({kind}) -> sort() list({kind})",
            lambda items: _sorted_by(items, items),
            cost=costs.self_compared,
            estimate=estimate,
            since=34,
        )
        yield row(
            f"list_{full.get(kind, kind)}_sortByAssociatedKeys",
            f"list(T) -> @sortByAssociatedKeys(list({kind})) list(T)",
            _sorted_by,
            cost=costs.self_compared,
            estimate=estimate,
            since=34,
        )


LISTS = (
    row("size_bytes", "size(bytes) int", len),
    row("bytes_size", "bytes -> size() int", len),
    row("size_list", "size(list(A)) int", len),
    row("list_size", "list(A) -> size() int", len),
    row("size_map", "size(map(A, B)) int", len),
    row("map_size", "map(A, B) -> size() int", len),
    row("size_string", "size(string) int", len),
    row("string_size", "string -> size() int", len),
    *_of_comparable(),
    _traversing("list_a_index_of_int", "list(A) -> indexOf(A) int", _index_of),
    _traversing("list_a_last_index_of_int", "list(A) -> lastIndexOf(A) int", _last_index_of),
    row(
        "list_sets_contains_list",
        "sets.contains(list(T), list(T)) bool",
        _covers,
        cost=costs.pairs,
        estimate=costs.pairs_estimate,
    ),
    row(
        "list_sets_equivalent_list",
        "sets.equivalent(list(T), list(T)) bool",
        lambda a, b: _covers(a, b) and _covers(b, a),
        cost=costs.pairs_twice,
        estimate=costs.pairs_twice_estimate,
    ),
    row(
        "list_sets_intersects_list",
        "sets.intersects(list(T), list(T)) bool",
        lambda a, b: any(is_item(each, b) for each in a),
        cost=costs.pairs,
        estimate=costs.pairs_estimate,
    ),
    row(
        "list_slice",
        "list(T) -> slice(int, int) list(T)",
        _slice,
        cost=costs.allocated,
        estimate=costs.sliced_estimate,
        since=34,
    ),
    row(
        "list_flatten",
        "list(list(T)) -> flatten() list(T)",
        _flatten,
        cost=costs.flattened,
        estimate=costs.flattened_estimate,
        since=34,
    ),
    row(
        "list_flatten_int",
        "list(dyn) -> flatten(int) list(dyn)",
        _flatten,
        cost=costs.flattened,
        estimate=costs.flattened_estimate,
        since=34,
    ),
    row(
        "lists_range",
        "lists.range(int) list(int)",
        _range,
        cost=costs.allocated,
        estimate=costs.range_estimate,
        since=34,
    ),
    row(
        "list_reverse",
        "list(T) -> reverse() list(T)",
        lambda items: list(items[::-1]),
        cost=costs.allocated,
        estimate=costs.reversed_estimate,
        since=34,
    ),
    row(
        "list_distinct",
        "list(T) -> distinct() list(T)",
        _distinct,
        cost=costs.self_compared,
        estimate=costs.distinct_estimate,
        since=34,
    ),
    *_sorting(),
    row("@mapInsert_map_key_value", "cel.@mapInsert(map(K, V), K, V) map(K, V)"),
    row("@mapInsert_map_map", "cel.@mapInsert(map(K, V), map(K, V)) map(K, V)"),
)
OPTIONALS = (
    row("optional_of", "optional.of(V) optional_type(V)", lambda value: Optional(True, value)),
    row(
        "optional_ofNonZeroValue",
        "optional.ofNonZeroValue(V) optional_type(V)",
        lambda value: NONE if is_zero(value) else Optional(True, value),
    ),
    row("optional_none", "optional.none() optional_type(V)", lambda: NONE),
    row("optional_value", "optional_type(V) -> value() V", _value),
    row("optional_hasValue", "optional_type(V) -> hasValue() bool", lambda optional: optional.present),
    row("optional_or_optional", "optional_type(V) -> or(optional_type(V)) optional_type(V)"),
    row("optional_orValue_value", "optional_type(V) -> orValue(V) V"),
    row("list_last", "list(V) -> last() optional_type(V)", lambda items: Optional(True, items[-1]) if items else NONE),
    row("list_first", "list(V) -> first() optional_type(V)", lambda items: Optional(True, items[0]) if items else NONE),
    row("optional_unwrap", "optional.unwrap(list(optional_type(V))) list(V)", _unwrap),
    row("optional_unwrapOpt", "list(optional_type(V)) -> unwrapOpt() list(V)", _unwrap),
)
