"""Uniqueness of set lists and map lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.field import Errors, Path, duplicate, invalid


def validate_list_types(value: Any, schema: Structural, path: Path) -> Errors:
    if not schema.has_unique_lists:
        return
    if isinstance(value, dict):
        if schema.additional is not None:
            for key, child in value.items():
                yield from validate_list_types(child, schema.additional, path.key(key))
        for key, child in value.items():
            if key in schema.properties:
                yield from validate_list_types(child, schema.properties[key], path.child(key))
    elif isinstance(value, list):
        yield from _validate_list(value, schema, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from validate_list_types(item, schema.items, path.index(index))


def _validate_list(value: list[Any], schema: Structural, path: Path) -> Errors:
    if schema.list_type == "set":
        for index in _second_ones(value):
            yield duplicate(path.index(index), printable(value[index]))
    elif schema.list_type == "map":
        yield from _validate_keys(value, schema, path)


def _validate_keys(value: list[Any], schema: Structural, path: Path) -> Errors:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid(path.index(index), printable(item), "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in schema.map_keys if key in item} if item else {} for item in value]
    for index in _second_ones(keys):
        yield duplicate(path.index(index), printable(keys[index]))


def _second_ones(items: list[Any]) -> Iterator[int]:
    """Yield the index of each second occurrence; further occurrences are not reported."""
    times: dict[bytes, int] = {}
    for index, item in enumerate(items):
        form = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        times[form] = times.get(form, 0) + 1
        if times[form] == 2:
            yield index
