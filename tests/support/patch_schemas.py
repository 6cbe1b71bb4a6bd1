"""Schemas for patch tests: hand-made ones, and the real types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.patch.interface import PatchSchema, SchemaKind
from pilothouse.machinery.schema import types


@dataclass(frozen=True)
class Made:
    kind: SchemaKind
    name: str
    strategies: frozenset[str] = frozenset()
    merge_key: str = ""
    element: PatchSchema | None = None
    lookup: Callable[[str], PatchSchema | None] = field(default=lambda name: None)

    def field(self, name: str) -> PatchSchema | None:
        return self.lookup(name)


TEXT = Made(SchemaKind.PRIMITIVE, "string")
TEXTS_BY_NAME = Made(SchemaKind.MAP, "map")


def struct(fields: Mapping[str, PatchSchema], *, name: str = "Thing", strategies: str = "") -> Made:
    return Made(SchemaKind.STRUCT, name, _split(strategies), lookup=fields.get)


def listing(element: PatchSchema, *, strategies: str = "", key: str = "") -> Made:
    return Made(SchemaKind.LIST, "slice", _split(strategies), key, element)


def kubernetes(kind: GroupVersionKind) -> PatchSchema:
    """A built-in type."""
    found = types.of(kind)
    assert found is not None
    return found.patch_schema


def _split(strategies: str) -> frozenset[str]:
    return frozenset(strategies.split(",")) - {""}
