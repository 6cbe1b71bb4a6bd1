"""Schemas for patch tests: hand-made ones, and the real types from their OpenAPI definitions."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson

from pilothouse.machinery.patch.schema import PatchSchema, SchemaKind

Definitions = dict[str, Any]


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


@cache
def kubernetes(definition: str) -> PatchSchema:
    """A built-in type by the name of its definition, e.g. `io.k8s.api.core.v1.Pod`."""
    package = importlib.resources.files("kubernetes_validate")
    text = (package / "kubernetes-json-schema" / "v1.36.0-local" / "_definitions.json").read_bytes()
    return _from_definition({"$ref": f"#/definitions/{definition}"}, orjson.loads(text)["$defs"])


def _from_definition(schema: Mapping[str, Any], all_of_them: Definitions) -> PatchSchema:
    strategies, key = schema.get("x-kubernetes-patch-strategy", ""), schema.get("x-kubernetes-patch-merge-key", "")
    name = schema.get("$ref", "").rpartition(".")[2]
    target = all_of_them[schema["$ref"].rpartition("/")[2]] if name else schema
    element = _from_definition(target["items"], all_of_them) if "items" in target else None
    kind = _kind(target)
    lookup = _lookup(target, all_of_them)
    return Made(kind, name or kind.value, _split(strategies), key, element, lookup)


def _lookup(target: Mapping[str, Any], all_of_them: Definitions) -> Callable[[str], PatchSchema | None]:
    @cache
    def find(name: str) -> PatchSchema | None:
        found = target.get("properties", {}).get(name)
        return None if found is None else _from_definition(found, all_of_them)

    return find


def _kind(target: Mapping[str, Any]) -> SchemaKind:
    if "properties" in target:
        return SchemaKind.STRUCT
    if target.get("type") == "array":
        return SchemaKind.LIST
    return SchemaKind.MAP if "additionalProperties" in target else SchemaKind.PRIMITIVE


def _split(strategies: str) -> frozenset[str]:
    return frozenset(strategies.split(",")) - {""}
