"""Type trees: structs with fields, maps and lists with elements, scalars.

A tree is immutable after construction and may be recursive (JSONSchemaProps is), so traverse it along a value.
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
    """Arbitrary JSON, preserved: RawExtension, FieldsV1, JSON."""


class Scalar(Enum):
    """Leaf types. Types after BYTES have their own UnmarshalJSON in Go: an error in one aborts decoding."""

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
    """One type. go_type: name printed by Go's reflect. name: OpenAPI definition of a struct, else empty."""

    kind: NodeKind
    go_type: str
    scalar: Scalar | None = None
    name: str = ""
    fields: Mapping[str, Field] = field(default_factory=dict, repr=False)
    element: TypeNode | None = field(default=None, repr=False)
    """Element of a map or list; for the three JSONSchemaProps unions, the schema."""
    list_type: str = ""
    """`map`, `set` or `atomic`; empty = unspecified, treated as atomic."""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    """`granular` or `atomic`; empty = granular. Applies to structs, too."""

    @property
    def struct_name(self) -> str:
        """Go's name of a struct without the package: `PodSpec`."""
        return self.go_type.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A struct field by its JSON name, with the content of Go's tags."""

    name: str
    node: TypeNode
    pointer: bool = False
    omitempty: bool = False
    omitzero: bool = False
    embedded: tuple[str, ...] = ()
    """Inlined structs on the path to the field; Go names them in errors: `("VolumeSource",)`."""
    map_type: str = ""
    """Merge type of the struct in this field; overrides the struct's own."""
    patch_strategy: tuple[str, ...] = ()
    patch_merge_key: str = ""
