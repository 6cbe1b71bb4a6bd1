"""CEL's functions of lists, sets, maps and optionals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.cel.interpreter.dispatch import ANY, Overload
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import NONE, Optional, equal, is_zero, shown, type_name

_LONGEST_RANGE = 1_000_000


def collection_functions() -> Iterator[Overload]:
    for kind in (str, bytes, list, dict):
        yield Overload("size", (kind,), len)
    yield from _lists()
    yield from _sets()
    yield from _optionals()


def _lists() -> Iterator[Overload]:
    yield Overload("slice", (list, int, int), _slice)
    yield Overload("flatten", (list,), lambda items: _flatten(items, 1))
    yield Overload("flatten", (list, int), _flatten)
    yield Overload("lists.range", (int,), _range)
    yield Overload("distinct", (list,), _distinct)
    yield Overload("reverse", (list,), lambda items: items[::-1])
    yield Overload("sort", (list,), lambda items: _sorted_by(items, items))
    yield Overload("@sortByAssociatedKeys", (list, list), _sorted_by)
    yield Overload("first", (list,), lambda items: Optional(True, items[0]) if items else NONE)
    yield Overload("last", (list,), lambda items: Optional(True, items[-1]) if items else NONE)


def _sets() -> Iterator[Overload]:
    yield Overload("sets.contains", (list, list), _covers)
    yield Overload("sets.equivalent", (list, list), lambda a, b: _covers(a, b) and _covers(b, a))
    yield Overload("sets.intersects", (list, list), lambda a, b: any(_is_in(each, a) for each in b))


def _optionals() -> Iterator[Overload]:
    yield Overload("optional.of", (ANY,), lambda value: Optional(True, value))
    yield Overload("optional.ofNonZeroValue", (ANY,), lambda value: NONE if is_zero(value) else Optional(True, value))
    yield Overload("optional.none", (), lambda: NONE)
    yield Overload("hasValue", (Optional,), lambda optional: optional.present)
    yield Overload("value", (Optional,), _value)
    yield Overload("optional.unwrap", (list,), _unwrap)
    yield Overload("unwrapOpt", (list,), _unwrap)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationFailed(f"{what}, negative indexes not supported")
    if start > end:
        raise EvaluationFailed(f"{what}, start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationFailed(f"{what}, list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int) -> list[Any]:
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
        if not _is_in(item, found):
            found.append(item)
    return found


def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len({type(key) for key in keys}) > 1:
        raise EvaluationFailed("list elements must have the same type")
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:
        raise EvaluationFailed("list elements must be comparable") from None
    return [items[index] for index in order]


def _is_in(item: Any, items: list[Any]) -> bool:
    return any(equal(item, each) for each in items)


def _covers(items: list[Any], wanted: list[Any]) -> bool:
    return all(_is_in(each, items) for each in wanted)


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationFailed("optional.none() dereference")
    return optional.value


def _unwrap(items: list[Optional]) -> list[Any]:
    return [each.value for each in items if each.present]


def index(container: Any, key: Any) -> Any:
    """`container[key]`, and `container.key`."""
    found = find(container, key)
    if found.present:
        return found.value
    if isinstance(container, list):
        raise EvaluationFailed(f"index out of bounds: {shown(key)}")
    raise EvaluationFailed(f"no such key: {shown(key)}")


def find(container: Any, key: Any) -> Optional:
    if type(container) is dict:
        return _find_key(container, key)
    if isinstance(container, list):
        position = _position(key)
        return Optional(True, container[position]) if 0 <= position < len(container) else NONE
    fields = getattr(container, "fields", None)
    return _find_key(fields, key) if fields is not None else NONE


def _find_key(mapping: dict[Any, Any], key: Any) -> Optional:
    try:
        return Optional(True, mapping[key]) if key in mapping else NONE
    except TypeError:
        return NONE


def _position(key: Any) -> int:
    if type(key) is float and not key.is_integer():
        raise EvaluationFailed(f"unsupported index value {key} in list")
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise EvaluationFailed(f"unsupported index type '{type_name(key)}' in list")
    return int(key)
