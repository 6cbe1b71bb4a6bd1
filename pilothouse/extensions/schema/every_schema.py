"""Traversal of nested schemas, structural or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.objects import Json

_PARTS = ("not", "items", "additionalProperties", "additionalItems", "allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions", "dependencies")


def every_schema(schema: Any) -> Iterator[Json]:
    """Yield the schema and every nested schema. Non-dict values yield nothing."""
    if isinstance(schema, list):
        for each in schema:
            yield from every_schema(each)
    if not isinstance(schema, dict):
        return
    yield schema
    for key in _PARTS:
        yield from every_schema(schema.get(key))
    for key in _MAPS:
        for _, child in sorted((schema.get(key) or {}).items()):
            yield from every_schema(child)
