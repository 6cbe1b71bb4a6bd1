"""Structural schemas: the fields and items of a value.

Constraints without field names (allOf, anyOf, oneOf, not, ranges, patterns) stay in `source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    source: Json = field(repr=False)
    type: str = ""
    properties: Mapping[str, Structural] = field(default_factory=dict)
    items: Structural | None = None
    additional: Structural | None = None
    """Schema of additional properties; None if they are allowed without a schema."""
    allows_additional: bool = False
    """Whether the schema has additionalProperties."""
    has_unique_lists: bool = False
    """Whether this schema or a nested schema has set lists or map lists."""
    has_embedded_resources: bool = False

    @property
    def nullable(self) -> bool:
        return bool(self.source.get("nullable"))

    @property
    def default(self) -> Any:
        return self.source.get("default")

    @property
    def preserves_unknown_fields(self) -> bool:
        return bool(self.source.get(PRESERVE))

    @property
    def embedded_resource(self) -> bool:
        return bool(self.source.get(EMBEDDED))

    @property
    def int_or_string(self) -> bool:
        return bool(self.source.get(INT_OR_STRING))

    @property
    def list_type(self) -> str:
        return self.source.get(LIST_TYPE) or ""

    @property
    def map_keys(self) -> tuple[str, ...]:
        return tuple(self.source.get(LIST_MAP_KEYS) or ())

    @property
    def map_type(self) -> str:
        return self.source.get(MAP_TYPE) or ""

    @property
    def rules(self) -> list[Json]:
        return self.source.get(VALIDATIONS) or []

    def of_field(self, name: str) -> Structural | None:
        """Return the schema of a declared or additional property."""
        return self.properties.get(name, self.additional)

    def children(self) -> Iterator[Structural]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items


def structural(schema: Json) -> Structural:
    items, additional = (_maybe_structural(schema.get(key)) for key in ("items", "additionalProperties"))
    properties = {name: structural(schema["properties"][name]) for name in sorted(schema.get("properties") or {})}
    below = [*properties.values(), *(nested for nested in (items, additional) if nested is not None)]
    return Structural(
        source=schema,
        type=schema.get("type") or "",
        properties=properties,
        items=items,
        additional=additional,
        allows_additional=schema.get("additionalProperties") is not None,
        has_unique_lists=schema.get(LIST_TYPE) in ("set", "map") or any(nested.has_unique_lists for nested in below),
        has_embedded_resources=bool(schema.get(EMBEDDED)) or any(nested.has_embedded_resources for nested in below),
    )


def _maybe_structural(schema: Any) -> Structural | None:
    return structural(schema) if isinstance(schema, dict) else None


_PARTS = ("not", "items", "additionalProperties", "additionalItems", "allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions", "dependencies")


def every_schema(schema: Any) -> Iterator[Json]:
    """Yield the schema and every nested schema. Non-dict values yield nothing."""
    if isinstance(schema, list):
        for nested in schema:
            yield from every_schema(nested)
    if not isinstance(schema, dict):
        return
    yield schema
    for key in _PARTS:
        yield from every_schema(schema.get(key))
    for key in _MAPS:
        for _, child in sorted((schema.get(key) or {}).items()):
            yield from every_schema(child)
