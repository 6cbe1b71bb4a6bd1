"""Forbidden parts of OpenAPI, and permitted combinations of Kubernetes' extensions."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.extensions.schema.definition.list_keys import validate_list_extensions
from pilothouse.extensions.schema.structural import EMBEDDED, LIST_TYPE, MAP_TYPE, PRESERVE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NOT_SUPPORTED = ("patternProperties", "definitions", "dependencies", "$ref")
_META_FIELDS = ("metadata", "kind", "apiVersion")


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """Restrictions that enclosing schemas impose."""

    defaults_forbidden: str | None = None
    """Reason against defaults; None = defaults are allowed."""
    inside_metadata: bool = False
    uncorrelatable: Path | None = None
    """The outermost schema whose values do not correlate with old values."""
    requires_valid_types: bool = True
    requires_atomic_sets: bool = True
    requires_map_keys: bool = True

    def below_uncorrelatable(self, path: Path) -> SchemaContext:
        return self if self.uncorrelatable is not None else replace(self, uncorrelatable=path)

    def of_property(self, schema: Json, name: str, path: Path, *, root: bool) -> SchemaContext:
        # Upstream treats unknown map types as not correlatable.
        correlatable = schema.get(MAP_TYPE) in (None, "granular", "atomic")
        below = self if correlatable else self.below_uncorrelatable(path)
        if (root or schema.get(EMBEDDED)) and name in _META_FIELDS:
            below = replace(below, inside_metadata=True)
            if root:
                below = replace(below, defaults_forbidden=f"in top-level {name}")
        return below

    def of_additional(self) -> SchemaContext:
        if not self.inside_metadata:
            return self
        return replace(self, defaults_forbidden="inside additionalProperties applying to object metadata")

    def of_items(self, schema: Json, path: Path) -> SchemaContext:
        return self if schema.get(LIST_TYPE) == "map" else self.below_uncorrelatable(path)


def validate_standard(schema: Json, path: Path, around: SchemaContext) -> Errors:
    """Validate the parts of a schema that do not depend on other schemas."""
    kind = schema.get("type") or ""
    if around.requires_valid_types and kind and kind not in TYPES:
        yield not_supported(path.child("type"), kind, TYPES)
    if schema.get("default") is not None and around.defaults_forbidden is not None:
        yield forbidden(path.child("default"), f"must not be set {around.defaults_forbidden}".rstrip())
    if schema.get("id"):
        yield forbidden(path.child("id"), "id is not supported")
    if schema.get("additionalItems") is not None:
        yield forbidden(path.child("additionalItems"), "additionalItems is not supported")
    for key in _NOT_SUPPORTED:
        if schema.get(key) or (key in ("dependencies", "$ref") and schema.get(key) is not None):
            yield forbidden(path.child(key), f"{key} is not supported")
    if kind == "null":
        yield forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative")
    if schema.get("items") and isinstance(schema["items"], list):
        yield forbidden(path.child("items"), "items must be a schema object and not an array")
    if around.inside_metadata and schema.get(EMBEDDED):
        yield forbidden(path.child(EMBEDDED), "must not be used inside of resource meta")


def validate_unique_items(schema: Json, path: Path) -> Errors:
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(path.child("uniqueItems"), why)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden(path.child("additionalProperties"), why)


def validate_extensions(schema: Json, path: Path, around: SchemaContext) -> Errors:
    kind, map_type = schema.get("type") or "", schema.get(MAP_TYPE)
    if schema.get(PRESERVE) is False:
        yield invalid(path.child(PRESERVE), False, "must be true or undefined")
    if map_type is not None and kind != "object":
        why = f"must be object if {MAP_TYPE} is specified"
        yield invalid(path.child("type"), kind, why) if kind else required(path.child("type"), why)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported(path.child(MAP_TYPE), map_type, ("atomic", "granular"))
    yield from validate_list_extensions(
        schema,
        path,
        requires_atomic_sets=around.requires_atomic_sets,
        requires_map_keys=around.requires_map_keys,
    )
