"""Forbidden parts of OpenAPI, permitted combinations of Kubernetes' extensions, and keys of set lists and map lists."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.extensions.schema.definition.go_form import go_items
from pilothouse.extensions.schema.structural import EMBEDDED, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE
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
        yield not_supported(path.child("type"), kind, TYPES, plain=True)
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
        reason = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(path.child("uniqueItems"), reason)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        reason = "additionalProperties and properties are mutual exclusive"
        yield forbidden(path.child("additionalProperties"), reason)


def validate_extensions(schema: Json, path: Path, around: SchemaContext) -> Errors:
    kind, map_type = schema.get("type") or "", schema.get(MAP_TYPE)
    if schema.get(PRESERVE) is False:
        yield invalid(path.child(PRESERVE), False, "must be true or undefined")
    if map_type is not None and kind != "object":
        reason = f"must be object if {MAP_TYPE} is specified"
        yield invalid(path.child("type"), kind, reason) if kind else required(path.child("type"), reason)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported(path.child(MAP_TYPE), map_type, ("atomic", "granular"), plain=True)
    yield from validate_list_extensions(
        schema,
        path,
        requires_atomic_sets=around.requires_atomic_sets,
        requires_map_keys=around.requires_map_keys,
    )


_TYPES = ("atomic", "set", "map")
_IN_SET = f"must be atomic as item of a list with {LIST_TYPE}=set"


def validate_list_extensions(
    schema: Json, path: Path, *, requires_atomic_sets: bool = True, requires_map_keys: bool = True
) -> Errors:
    list_type, kind = schema.get(LIST_TYPE), schema.get("type") or ""
    if list_type is not None and kind != "array":
        reason = f"must be array if {LIST_TYPE} is specified"
        yield invalid(path.child("type"), kind, reason) if kind else required(path.child("type"), reason)
    elif requires_atomic_sets:
        yield from validate_set_items(schema, path)
    if list_type is not None and list_type not in _TYPES:
        yield not_supported(path.child(LIST_TYPE), list_type, _TYPES, plain=True)
    if schema.get(LIST_MAP_KEYS) and list_type != "map":
        reason = f"must be map if {LIST_MAP_KEYS} is non-empty"
        at = path.child(LIST_TYPE)
        yield required(at, reason) if list_type is None else invalid(at, list_type, reason)
    if list_type == "map":
        yield from _validate_map(schema, path)
    if requires_map_keys:
        yield from validate_item_nullability(schema, path)


def validate_set_items(schema: Json, path: Path) -> Errors:
    items, at = schema.get("items"), path.child("items")
    if schema.get(LIST_TYPE) != "set" or not isinstance(items, dict):
        return
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        yield invalid(at.child(LIST_TYPE), items.get(LIST_TYPE), _IN_SET)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield invalid(at.child(MAP_TYPE), items.get(LIST_TYPE), _IN_SET)


def _validate_map(schema: Json, path: Path) -> Errors:
    items, keys = schema.get("items"), schema.get(LIST_MAP_KEYS) or []
    if not keys:
        yield required(path.child(LIST_MAP_KEYS), f"must not be empty if {LIST_TYPE} is map")
    if items is None:
        yield required(path.child("items"), f"must have a schema if {LIST_TYPE} is map")
    elif isinstance(items, list):
        reason = f"must only have a single schema if {LIST_TYPE} is map"
        yield invalid(path.child("items"), go_items(items), reason)
    elif items.get("type") != "object":
        reason = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid(path.child("items").child("type"), items.get("type") or "", reason)
    else:
        properties = items.get("properties") or {}
        for index, key in enumerate(keys):
            if key not in properties:
                yield invalid(path.child(LIST_MAP_KEYS), keys, "entries must all be names of item properties")
            elif properties[key].get("type") in ("array", "object"):
                at = path.child("items", "properties").key(key).child("type")
                yield invalid(at, items.get("type"), f"must be a scalar type if parent array's {LIST_TYPE} is map")
            if key in keys[:index]:
                yield invalid(path.child(LIST_MAP_KEYS), keys, "must not contain duplicate entries")


def validate_item_nullability(schema: Json, path: Path) -> Errors:
    """Check that every item has a value for each key."""
    items, at = schema.get("items"), path.child("items")
    if schema.get(LIST_TYPE) not in ("set", "map") or not isinstance(items, dict):
        return
    if items.get("nullable"):
        yield forbidden(at.child("nullable"), f"cannot be nullable when {LIST_TYPE} is {schema[LIST_TYPE]}")
    if schema[LIST_TYPE] == "map":
        for key in schema.get(LIST_MAP_KEYS) or []:
            yield from _validate_key_is_there(key, items, at.child("properties").key(key))


def _validate_key_is_there(key: str, items: Json, path: Path) -> Errors:
    field, reason = (items.get("properties") or {}).get(key), f"this property is in {LIST_MAP_KEYS}, so it"
    if field is None:
        return
    if key not in (items.get("required") or []) and field.get("default") is None:
        yield required(path.child("default"), f"{reason} must have a default or be a required property")
    if field.get("nullable"):
        yield forbidden(path.child("nullable"), f"{reason} cannot be nullable")
