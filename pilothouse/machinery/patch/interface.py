"""Interface of patches: errors, each with its own response, and the schema for strategic merge patches."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pilothouse.machinery.gofmt import quote


class PatchError(Exception):
    """Base of all patch errors."""


class MalformedPatch(PatchError):
    """The body is not a patch of its format: 400."""


class TooManyOperations(PatchError):
    """A JSON patch has too many operations: 413."""


class PatchDoesNotApply(PatchError):
    """The patch is well-formed but not applicable to the object: 422; clients do not see the message."""


class FailedTest(PatchDoesNotApply):
    """A `test` operation of a JSON patch failed."""


class PatchFailed(PatchError):
    """The patch contradicts itself or the type: 500 with this message and without a reason."""


class SchemaKind(Enum):
    STRUCT = "struct"
    MAP = "map"
    LIST = "slice"
    PRIMITIVE = "primitive"


class PatchSchema(Protocol):
    """Type of a value, and the patch strategy of the field that holds it."""

    @property
    def kind(self) -> SchemaKind: ...

    @property
    def name(self) -> str:
        """Go name of a struct (`PodSpec`), or Go kind of another type (`map`, `slice`, `string`, `int32`)."""

    @property
    def strategies(self) -> frozenset[str]:
        """x-kubernetes-patch-strategy of the field: a subset of merge, replace and retainKeys."""

    @property
    def merge_key(self) -> str:
        """x-kubernetes-patch-merge-key of the field, or ""."""

    @property
    def element(self) -> PatchSchema | None:
        """Element type of a list, else None."""

    def field(self, name: str) -> PatchSchema | None:
        """Return the schema of a struct's field, or None."""


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
    """Return merge, replace or "". retainKeys affects the creation of patches, not their application."""
    return next(iter(field.strategies - {"retainKeys"}), "")
