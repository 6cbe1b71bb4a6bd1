"""Structural schemas: every field has one type, declared outside of allOf, anyOf, oneOf and not."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from pilothouse.extensions.schema.definition.regular_expressions import go_regexp_error
from pilothouse.extensions.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import NOWHERE, Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json

_INT_OR_STRING_ANY_OF = [{"type": "integer"}, {"type": "string"}]
_ALTERNATIVES = ("allOf", "oneOf", "anyOf")
_UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


class SchemaLevel(Enum):
    """Position of a schema, with the message for a missing type."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested schema with its path."""

    schema: Json
    path: Path


def unsupported_part(schema: Json) -> str:
    """Return the reason why a schema cannot be structural, in upstream's words; empty if structural."""
    for key in _UNSUPPORTED:
        if schema.get(key) or (key == "additionalItems" and schema.get(key) is not None):
            return f"OpenAPIV3Schema '{key.removeprefix('$') if key == '$schema' else key}' is not supported"
    if schema.get("items") and isinstance(schema["items"], list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.get(PRESERVE) is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return next(filter(None, map(unsupported_part, _all_below(schema))), "")


def is_structural(schema: Json) -> bool:
    return not unsupported_part(schema) and not any(validate_structural(schema, NOWHERE))


def validate_structural(schema: Json, path: Path) -> Errors:
    """Return the errors in upstream's sort order."""
    errors = [*_invariants(schema, SchemaLevel.ROOT, path), *_completeness(schema, schema, path, path)]
    return iter(sorted(errors, key=str))


def alternatives(schema: Json, path: Path) -> Iterator[Nested]:
    """Yield the schemas under allOf, anyOf, oneOf and not."""
    if isinstance(schema.get("not"), dict):
        yield Nested(schema["not"], path.child("not"))
    for key in _ALTERNATIVES:
        for index, nested in enumerate(schema.get(key) or []):
            yield Nested(nested, path.child(key).index(index))


def _all_below(schema: Json) -> Iterator[Json]:
    yield from (schema.get("properties") or {}).values()
    yield from (
        nested for nested in (schema.get("items"), schema.get("additionalProperties")) if isinstance(nested, dict)
    )
    yield from (nested.schema for nested in alternatives(schema, Path()))


def _invariants(schema: Json, level: SchemaLevel, path: Path) -> Errors:
    kind = schema.get("type") or ""
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(path.child("items"), "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _invariants(schema["items"], SchemaLevel.ITEM, path.child("items"))
    for name, property in (schema.get("properties") or {}).items():
        yield from _invariants(property, SchemaLevel.FIELD, path.child("properties").key(name))
    additional = schema.get("additionalProperties")
    if additional is not None and level is SchemaLevel.ROOT:
        yield forbidden(path.child("additionalProperties"), "must not be used at the root")
    if isinstance(additional, dict):
        yield from _invariants(additional, SchemaLevel.FIELD, path.child("additionalProperties"))
    for key in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(key):
            yield invalid(path.child(key), True, f"must be false if {INT_OR_STRING} is true")
    yield from _value_validation(schema, path)
    yield from _type(schema, level, path)
    yield from _metadata(schema, level, path)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        reason = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(path.child("properties"), reason)


def _type(schema: Json, level: SchemaLevel, path: Path) -> Errors:
    kind, embedded = schema.get("type") or "", schema.get(EMBEDDED)
    reason = f"must be object if {EMBEDDED} is true"
    if embedded and kind != "object":
        yield invalid(path.child("type"), kind, reason) if kind else required(path.child("type"), reason)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(path.child("type"), level.value)
    if embedded and schema.get("additionalProperties") is not None:
        yield forbidden(path.child("additionalProperties"), f"must not be used if {EMBEDDED} is set")
    if level is SchemaLevel.ROOT and kind not in ("", "object"):
        yield invalid(path.child("type"), kind, "must be object at the root")


def _metadata(schema: Json, level: SchemaLevel, path: Path) -> Errors:
    properties = schema.get("properties") or {}
    checked = level is SchemaLevel.ROOT or bool(schema.get(EMBEDDED))
    for name in ("kind", "apiVersion"):
        kind = (properties.get(name) or {}).get("type") or ""
        if checked and name in properties and kind != "string":
            yield invalid(path.child("properties").key(name).child("type"), kind, "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at, kind = path.child("properties").key("metadata"), metadata.get("type") or ""
    if checked and kind != "object":
        yield invalid(at.child("type"), kind, "must be object")
    if level is SchemaLevel.ROOT and not _says_only_names(metadata):
        reason = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(at, reason)


def _says_only_names(metadata: Json) -> bool:
    specified = {key for key, value in metadata.items() if value not in (None, "", [], {}, False)}
    return specified <= {"type", "default", "properties"} and set(metadata.get("properties") or {}) <= {
        "name",
        "generateName",
    }


def _value_validation(schema: Json, path: Path, *, skip_any_of: bool | None = None) -> Errors:
    if skip_any_of is None:
        skip_any_of = schema.get("anyOf") == _INT_OR_STRING_ANY_OF
    first = (schema.get("allOf") or [{}])[0]
    for nested in alternatives(schema, path):
        if skip_any_of and nested.path.text.startswith(f"{path.text}.anyOf["):
            continue
        skip = nested.schema is first and first.get("anyOf") == _INT_OR_STRING_ANY_OF
        yield from _nested(nested.schema, nested.path, skip_any_of=skip)
    if (pattern := schema.get("pattern")) and (error := go_regexp_error(pattern)):
        reason = f"must be a valid regular expression, but isn't: {error}"
        yield invalid(path.child("pattern"), pattern, reason)


_FORBIDDEN_BELOW = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    INT_OR_STRING: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def _nested(schema: Json, path: Path, *, skip_any_of: bool = False) -> Errors:
    yield from _value_validation(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], path.child("items"))
    properties = schema.get("properties") or {}
    for name, property in properties.items():
        yield from _nested(property, path.child("properties").key(name))
    for key, reason in _FORBIDDEN_BELOW.items():
        value = schema.get(key)
        if value or (value is not None and key == "default") or (value == {} and key == "additionalProperties"):
            yield forbidden(path.child(key), reason)
    if "metadata" in properties:
        yield forbidden(path.child("properties").key("metadata"), "must not be specified in a nested context")


def _completeness(schema: Json, whole: Json | None, path: Path, place: Path) -> Errors:
    """Check that fields named in alternatives are also declared outside of them."""
    for nested in alternatives(schema, place):
        yield from _nested_completeness(nested.schema, whole, path, nested.path)


def _nested_completeness(schema: Json, whole: Json | None, path: Path, place: Path) -> Errors:
    if whole is None:
        yield required(path, f"because it is defined in {place}")
        return
    yield from _completeness(schema, whole, path, place)
    if isinstance(schema.get("items"), dict):
        items = whole.get("items") if isinstance(whole.get("items"), dict) else None
        yield from _nested_completeness(schema["items"], items, path.child("items"), place.child("items"))
    properties = whole.get("properties") or {}
    for name, property in (schema.get("properties") or {}).items():
        at, where = path.child("properties").key(name), place.child("properties").key(name)
        yield from _nested_completeness(property, properties.get(name), at, where)
