"""The facts of a type that a strategic merge patch needs; whoever has the types implements it."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


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
