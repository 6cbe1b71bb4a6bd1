"""Pruning: drops unknown fields, and reports their paths.

A pruner is compiled once per schema node. It yields path suffixes (`.w`, `[1].w`) of dropped fields, so objects without
unknown fields build no paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.objects import Json

Pruner: TypeAlias = Callable[[Any], Iterable[str]]
"""Drops unknown fields in place, and yields their path suffixes."""

_CONTAINERS = (dict, list)
_META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def object_pruner(schema: Structural | None) -> Callable[[Json], list[str]]:
    """Return the pruner of a resource; apiVersion, kind and metadata are always known."""
    prune = _pruner(schema or Structural({}), known=_META_FIELDS)

    def paths(obj: Json) -> list[str]:
        return sorted(end.removeprefix(".") for end in prune(obj))

    return paths


def _pruner(schema: Structural | None, *, known: frozenset[str] = frozenset()) -> Pruner:
    if schema is None:
        return _drop_all
    if schema.embedded_resource:
        known = _META_FIELDS
    if not (known or schema.properties or schema.items or schema.allows_additional or schema.preserves_unknown_fields):
        return _drop_all
    fields = {name: _pruner(child) for name, child in schema.properties.items() if name not in known}
    rest = _pruner(schema.additional) if schema.allows_additional else None
    if schema.preserves_unknown_fields:
        return _either(_fields_pruner(fields, rest or _keep, known), _items_keeper(schema.items))
    return _either(_fields_pruner(fields, rest, known), _items_pruner(_pruner(schema.items)))


def _either(of_object: Pruner, of_list: Pruner) -> Pruner:
    def prune(value: Any) -> Iterable[str]:
        if isinstance(value, dict):
            return of_object(value)
        return of_list(value) if isinstance(value, list) else ()

    return prune


def _fields_pruner(fields: dict[str, Pruner], rest: Pruner | None, known: frozenset[str]) -> Pruner:
    def prune(value: Json) -> Iterable[str]:
        paths: list[str] = []
        unknown: list[str] = []
        for key, child in value.items():
            if key in known:
                continue
            step = fields.get(key, rest)
            if step is None:
                unknown.append(key)
            elif isinstance(child, _CONTAINERS):
                paths += [f".{key}{end}" for end in step(child)]
        for key in unknown:
            del value[key]
        return paths + [f".{key}" for key in unknown]

    return prune


def _items_pruner(step: Pruner) -> Pruner:
    def prune(value: list[Any]) -> Iterable[str]:
        return [f"[{index}]{end}" for index, item in enumerate(value) for end in step(item)]

    return prune


def _items_keeper(schema: Structural | None) -> Pruner:
    """Return the pruner for items of a list that preserves unknown fields; the items preserve theirs, too."""
    if schema is None:
        return _keep
    known = _META_FIELDS if schema.embedded_resource else frozenset()
    fields = {name: _pruner(child) for name, child in schema.properties.items() if name not in known}
    rest = _pruner(schema.additional) if schema.allows_additional else _keep
    return _items_pruner(_either(_fields_pruner(fields, rest, known), _items_keeper(schema.items)))


def _keep(value: Any) -> Iterable[str]:
    return ()


def _drop_all(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        dropped = [f".{key}" for key in value]
        value.clear()
        return dropped
    if isinstance(value, list):
        return [f"[{index}]{end}" for index, item in enumerate(value) for end in _drop_all(item)]
    return ()


def prune_value(value: Any, schema: Structural) -> None:
    """Prune a part of an object."""
    _pruner(schema)(value)
