"""Looking up a field's schema, with upstream's complaints when the type has no such field."""

from __future__ import annotations

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.patch.errors import PatchFailed
from pilothouse.machinery.patch.schema import PatchSchema, SchemaKind


def struct_field(schema: PatchSchema, name: str) -> PatchSchema:
    if schema.kind is not SchemaKind.STRUCT:
        raise PatchFailed(f"merging an object in json but data type is not struct, instead is: {schema.name}")
    field = schema.field(name)
    if field is None:
        raise PatchFailed(f"unable to find api field in struct {schema.name} for the json field {quote(name)}")
    return field


def list_field(schema: PatchSchema, name: str) -> PatchSchema:
    field = struct_field(schema, name)
    if field.element is None:
        raise PatchFailed(f"expected slice or array type, but got: {schema.kind.value}")
    if field.element.kind is SchemaKind.LIST:
        raise PatchFailed("unexpected slice of slice")
    return field


def strategy_of(field: PatchSchema) -> str:
    """merge, replace or nothing: retainKeys changes how patches are made, not how they are applied."""
    return next(iter(field.strategies - {"retainKeys"}), "")
