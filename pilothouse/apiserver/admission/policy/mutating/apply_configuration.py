"""Mutations by apply configurations: server-side apply merge without field ownership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.apiserver.admission.equivalents import ServedForm
from pilothouse.apiserver.admission.policy.mutating.errors import MutationFailed
from pilothouse.apiserver.admission.policy.mutating.patch_values import NotJson, as_json, type_mismatches
from pilothouse.machinery.apply.atoms import Atom, Unkeyed
from pilothouse.machinery.apply.merge import merge
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.objects import Json


def configured(form: ServedForm, obj: Json, configuration: Any) -> Json:
    """Merge `configuration`, the value of the expression, into the object. Raises MutationFailed."""
    if wrong := [*type_mismatches(configuration, "Object")]:
        raise MutationFailed("type mismatch: " + "\n".join(wrong))
    try:
        config: Json = as_json(configuration)
    except NotJson as error:
        raise MutationFailed(f"invalid return type: {error}") from None
    config |= {"apiVersion": form.kind.api_version, "kind": form.kind.kind}
    return _merged(form.atom(), obj, config)


def _merged(atom: Atom, obj: Json, config: Json) -> Json:
    try:
        check(atom, config)
    except TypedError as error:
        raise _failed(f"failed to convert patch object to typed object: {error}") from None
    if atomics := [*_atomics(atom, config, "")]:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise _failed(f"invalid ApplyConfiguration: {why}")
    try:
        check(atom, obj, allow_duplicates=True)
    except TypedError as error:
        raise _failed(f"failed to convert original object to typed object: {error}") from None
    try:
        merged: Json = merge(atom, obj, config)
    except Unkeyed as error:
        raise _failed(f"failed to merge patch: {error}") from None
    return merged


def _failed(why: str) -> MutationFailed:
    return MutationFailed(f"error applying patch: {why}")


def _atomics(atom: Atom, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic values. Applying a partial atomic value would drop its other fields."""
    if isinstance(value, dict) and atom.map is not None:
        if atom.map.atomic:
            yield path
        for name, each in value.items():
            if name in atom.map.fields:
                yield from _atomics(atom.map.fields[name], each, f"{path}.{name}")
    if isinstance(value, list) and atom.list is not None:
        if not atom.list.associative:
            yield path
        for index, each in enumerate(value):
            yield from _atomics(atom.list.element, each, f"{path}[{index}]")
