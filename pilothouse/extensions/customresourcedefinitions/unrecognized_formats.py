"""Formats in schemas that nobody checks, which is most often a slip of the pen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.extensions.schema.formats import format_check
from pilothouse.machinery.objects import Json

_NUMERIC = {"integer": ("int32", "int64"), "number": ("float", "double")}
_PARTS = ("not", "items", "additionalProperties", "additionalItems", "allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions")


def unrecognized_formats(spec: Json) -> list[str]:
    """In the order of the versions; one that stands there twice is named twice."""
    schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ())
    return [part["format"] for schema in schemas for part in _parts(schema) if not _is_recognized(part)]


def _is_recognized(schema: Json) -> bool:
    kind, name = schema.get("type") or "string", schema.get("format")
    if not name:
        return True
    return format_check(name) is not None if kind == "string" else name in _NUMERIC.get(kind, ())


def _parts(schema: Any) -> Iterator[Json]:
    """The schema and all those in it."""
    if isinstance(schema, list):
        for each in schema:
            yield from _parts(each)
    if not isinstance(schema, dict):
        return
    yield schema
    for key in _PARTS:
        yield from _parts(schema.get(key))
    for key in _MAPS:
        for _, child in sorted((schema.get(key) or {}).items()):
            yield from _parts(child)
