"""Validation of set lists and map lists: item types and keys."""

from __future__ import annotations

from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.structural import LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json

_TYPES = ("atomic", "set", "map")
_IN_SET = f"must be atomic as item of a list with {LIST_TYPE}=set"


def validate_list_extensions(
    schema: Json, path: Path, *, requires_atomic_sets: bool = True, requires_map_keys: bool = True
) -> Errors:
    list_type, kind = schema.get(LIST_TYPE), schema.get("type") or ""
    if list_type is not None and kind != "array":
        why = f"must be array if {LIST_TYPE} is specified"
        yield invalid(path.child("type"), kind, why) if kind else required(path.child("type"), why)
    elif requires_atomic_sets:
        yield from validate_set_items(schema, path)
    if list_type is not None and list_type not in _TYPES:
        yield not_supported(path.child(LIST_TYPE), list_type, _TYPES)
    if schema.get(LIST_MAP_KEYS) and list_type != "map":
        why = f"must be map if {LIST_MAP_KEYS} is non-empty"
        at = path.child(LIST_TYPE)
        yield required(at, why) if list_type is None else invalid(at, list_type, why)
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
        why = f"must only have a single schema if {LIST_TYPE} is map"
        yield invalid(path.child("items"), printable(items), why)
    elif items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid(path.child("items").child("type"), items.get("type") or "", why)
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
    field, why = (items.get("properties") or {}).get(key), f"this property is in {LIST_MAP_KEYS}, so it"
    if field is None:
        return
    if key not in (items.get("required") or []) and field.get("default") is None:
        yield required(path.child("default"), f"{why} must have a default or be a required property")
    if field.get("nullable"):
        yield forbidden(path.child("nullable"), f"{why} cannot be nullable")
