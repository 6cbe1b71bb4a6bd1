"""The tree of a type: structs with fields, maps and lists with elements, scalars.

A tree is built once and never changes. It may contain itself (JSONSchemaProps does), so walk it along a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum, auto

from pilothouse.machinery.dataclass import dataclass


class NodeKind(Enum):
    STRUCT = auto()
    MAP = auto()
    LIST = auto()
    SCALAR = auto()
    ANY = auto()
    """Any JSON, kept as it came: RawExtension, FieldsV1, JSON."""


class Scalar(Enum):
    """The leaves. Those after BYTES have their own UnmarshalJSON in Go, so their errors end decoding at once."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    BYTES = "[]uint8"
    TIME = "v1.Time"
    MICRO_TIME = "v1.MicroTime"
    QUANTITY = "resource.Quantity"
    INT_OR_STRING = "intstr.IntOrString"
    SCHEMA_OR_BOOL = "v1.JSONSchemaPropsOrBool"
    SCHEMA_OR_ARRAY = "v1.JSONSchemaPropsOrArray"
    SCHEMA_OR_STRINGS = "v1.JSONSchemaPropsOrStringArray"


@dataclass(slots=True, eq=False, weakref_slot=True)
class TypeNode:
    """One type. `go_type` is what reflect prints for it; `name` is a struct's OpenAPI definition, else empty."""

    kind: NodeKind
    go_type: str
    scalar: Scalar | None = None
    name: str = ""
    fields: Mapping[str, Field] = field(default_factory=dict, repr=False)
    element: TypeNode | None = field(default=None, repr=False)
    """Of a map or list; of the three JSONSchemaProps unions, the schema."""
    list_type: str = ""
    """`map`, `set` or `atomic`; empty where the schema says nothing, which counts as atomic."""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    """`granular` or `atomic`; empty counts as granular. Structs have it too."""

    @property
    def struct_name(self) -> str:
        """Go's bare name of a struct: `PodSpec`."""
        return self.go_type.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a struct by its JSON name, with what Go's tags say about it."""

    name: str
    node: TypeNode
    pointer: bool = False
    omitempty: bool = False
    omitzero: bool = False
    embedded: tuple[str, ...] = ()
    """The inlined structs on the way to the field, which Go names in errors: `("VolumeSource",)`."""
    map_type: str = ""
    """Says how the struct in this field merges, where the field says otherwise than the struct."""
    patch_strategy: tuple[str, ...] = ()
    patch_merge_key: str = ""
