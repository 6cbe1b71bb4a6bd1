"""The facts of a type that a strategic merge patch needs; whoever has the types implements it."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.patch.errors import PatchFailed


class SchemaKind(Enum):
    STRUCT = "struct"
    MAP = "map"
    LIST = "slice"
    PRIMITIVE = "primitive"


class PatchSchema(Protocol):
    """A type, together with how a patch treats the field that has it."""

    @property
    def kind(self) -> SchemaKind: ...

    @property
    def name(self) -> str:
        """The Go name of a struct (`PodSpec`); the Go kind of anything else (`map`, `slice`, `string`, `int32`)."""

    @property
    def strategies(self) -> frozenset[str]:
        """The field's x-kubernetes-patch-strategy: of merge, replace and retainKeys, those that are set."""

    @property
    def merge_key(self) -> str:
        """The field's x-kubernetes-patch-merge-key, or nothing."""

    @property
    def element(self) -> PatchSchema | None:
        """The type of a list's elements; None for all that is no list."""

    def field(self, name: str) -> PatchSchema | None:
        """The schema of a struct's field; None when there is no such field."""


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
