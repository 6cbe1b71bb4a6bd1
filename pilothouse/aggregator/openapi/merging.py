"""Merging of OpenAPI v2 documents.

Existing paths win. A definition or parameter with a taken name is renamed in the later document, to the first of
NAME_v2, NAME_v3, … that is free or has equal content:

    Thing {a} + Thing {b} + Thing {b}  →  Thing {a}, Thing_v2 {b}
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pilothouse.aggregator.openapi.spec import Renames, Section, Spec
from pilothouse.machinery.objects import Json

_KINDS = "x-kubernetes-group-version-kind"

Same: TypeAlias = Callable[[Json, Json], bool]


def merge(into: Spec, spec: Spec) -> Spec:
    """Return the merged document with the head of the first."""
    new = spec
    if not into.paths.keys().isdisjoint(spec.paths):
        new = spec.filtered(lambda path: path not in into.paths)
    if not new.paths:
        return into
    new = new.renamed(
        _renames(into.definitions, new.definitions, _is_same_definition),
        _renames(into.parameters, new.parameters, Json.__eq__),
    )
    return replace(
        into,
        paths=into.paths | new.paths,
        definitions=_with_kinds_of_both(into.definitions, new.definitions),
        parameters=new.parameters | into.parameters,
    )


def _renames(taken: Section, new: Section, same: Same) -> Renames:
    renames: Renames = {}
    for name in sorted(new):
        if name in taken and not same(taken[name], new[name]):
            renames[name] = _free_name(name, taken, new, same)
    return renames


def _free_name(name: str, taken: Section, new: Section, same: Same) -> str:
    for number in itertools.count(2):
        candidate = f"{name}_v{number}"
        if candidate in taken and same(taken[candidate], new[name]) and candidate not in new:
            return candidate
        if candidate not in taken and candidate not in new:
            return candidate
    raise AssertionError


def _is_same_definition(first: Json, second: Json) -> bool:
    """Compare two definitions, ignoring their kinds."""
    return _without_kinds(first) == _without_kinds(second)


def _without_kinds(definition: Json) -> Json:
    return {key: value for key, value in definition.items() if key != _KINDS}


def _with_kinds_of_both(taken: Section, new: Section) -> Section:
    """Merge the sections; definitions present in both get the kinds of both."""
    out = taken | {name: definition for name, definition in new.items() if name not in taken}
    for name in new.keys() & taken.keys():
        kinds = taken[name].get(_KINDS) or []
        more = [kind for kind in new[name].get(_KINDS) or [] if kind not in kinds]
        if more:
            out[name] = {**taken[name], _KINDS: sorted([*kinds, *more], key=_kind_order)}
    return out


def _kind_order(kind: Json) -> tuple[str, str, str]:
    return str(kind.get("group", "")), str(kind.get("version", "")), str(kind.get("kind", ""))
