"""Upstream's key order in documents, so that equal documents have equal bytes and hashes.

Schemas have the keys of OpenAPI in the order of upstream's types, then extensions by name.
"""

from __future__ import annotations

from typing import Any

_SCHEMA = (
    *("id", "description", "type", "nullable", "format", "title", "default"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
    *("maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required"),
    *("items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties"),
    *("dependencies", "additionalItems", "definitions", "discriminator", "readOnly", "externalDocs", "example"),
    *("$schema", "$ref"),
)
_PLACE = {key: place for place, key in enumerate(_SCHEMA)}
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "definitions"})
_SCHEMAS = frozenset({"items", "allOf", "oneOf", "anyOf", "not", "additionalProperties", "additionalItems"})


def ordered_schema(schema: Any) -> Any:
    """Return a copy in upstream's order, including nested schemas."""
    if isinstance(schema, list):
        return [ordered_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _value(key, schema[key]) for key in sorted(schema, key=_place)}


def _place(key: str) -> tuple[int, str]:
    return _PLACE.get(key, len(_SCHEMA)), key


def _value(key: str, value: Any) -> Any:
    if key in _SCHEMAS_BY_NAME:
        return {name: ordered_schema(value[name]) for name in sorted(value)}
    return ordered_schema(value) if key in _SCHEMAS else by_name(value)


def by_name(value: Any) -> Any:
    """Return a copy with sorted keys, as Go encodes maps."""
    if isinstance(value, list):
        return [by_name(each) for each in value]
    return {key: by_name(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def html_safe(document: bytes) -> bytes:
    """Escape the characters that Go's JSON escapes for HTML. In JSON they occur in strings only."""
    return document.replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")
