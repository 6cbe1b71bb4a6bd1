"""Defaulting of missing fields, and of nulls in fields that are not nullable.

Nulls that are neither allowed nor defaulted are dropped first. Steps are compiled only for schema nodes that need them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.objects import Json

Defaulter: TypeAlias = Callable[[Any], None]

_CONTAINERS = (dict, list)


def defaulter(schema: Structural | None) -> Defaulter:
    return (_step(schema) if schema else None) or _nothing


def drop_meaningless_nulls(value: Any, schema: Structural | None) -> None:
    """Drop nulls in fields that are not nullable and have no default."""
    if schema is None:
        return
    if isinstance(value, dict):
        for key in [key for key, child in value.items() if child is None]:
            field = schema.of_field(key)
            if field is not None and not field.nullable and field.default is None:
                del value[key]
        for key, child in value.items():
            if isinstance(child, _CONTAINERS):
                drop_meaningless_nulls(child, schema.of_field(key))
    elif isinstance(value, list):
        for item in value:
            drop_meaningless_nulls(item, schema.items)


def _nothing(value: Any) -> None:
    pass


def _step(schema: Structural | None) -> Defaulter | None:
    """Return the defaulting step; None if the schema has no defaults."""
    if schema is None:
        return None
    of_object = _of_object(schema)
    of_list = _of_items(schema.items)
    if of_object is None and of_list is None:
        return None

    def default(value: Any) -> None:
        if isinstance(value, dict):
            if of_object is not None:
                of_object(value)
        elif isinstance(value, list) and of_list is not None:
            of_list(value)

    return default


def _of_object(schema: Structural) -> Callable[[Json], None] | None:
    defaults = {name: child for name, child in schema.properties.items() if child.default is not None}
    steps = {name: step for name, child in schema.properties.items() if (step := _step(child))}
    rest, rest_step = schema.additional, _step(schema.additional)
    if not (defaults or steps or rest_step or (rest is not None and rest.default is not None)):
        return None

    def default(value: Json) -> None:
        for name, child in defaults.items():
            if name not in value or (value[name] is None and not child.nullable):
                value[name] = copy.deepcopy(child.default)
        for name, step in steps.items():
            if name in value:
                step(value[name])
        if rest is not None:
            for name in value.keys() - schema.properties.keys():
                if value[name] is None and not rest.nullable:
                    value[name] = copy.deepcopy(rest.default)
                if rest_step is not None:
                    rest_step(value[name])

    return default


def _of_items(items: Structural | None) -> Callable[[list[Any]], None] | None:
    step = _step(items)
    if items is None or (step is None and items.default is None):
        return None

    def default(value: list[Any]) -> None:
        for index, item in enumerate(value):
            if item is None and not items.nullable:
                value[index] = copy.deepcopy(items.default)
            if step is not None:
                step(value[index])

    return default
