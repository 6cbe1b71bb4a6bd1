"""Unrecognized formats in schemas, reported as warnings because they are usually typos."""

from __future__ import annotations

from pilothouse.extensions.schema.every_schema import every_schema
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.formats import format_check

_NUMERIC = {"integer": ("int32", "int64"), "number": ("float", "double")}


def unrecognized_formats(spec: Json) -> list[str]:
    """Return the unrecognized formats in the order of the versions, with duplicates."""
    schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ())
    return [part["format"] for schema in schemas for part in every_schema(schema) if not _is_recognized(part)]


def _is_recognized(schema: Json) -> bool:
    kind, name = schema.get("type") or "string", schema.get("format")
    if not name:
        return True
    return format_check(name) is not None if kind == "string" else name in _NUMERIC.get(kind, ())
