"""How server-side apply sees a custom resource: which lists and maps merge by key, and which are replaced whole."""

from __future__ import annotations

from pilothouse.extensions.schema.embedded import object_meta_type
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode

_ANYTHING = TypeNode(NodeKind.ANY, "interface {}")
_STRING = TypeNode(NodeKind.SCALAR, "string", scalar=Scalar.STRING)
_SCALARS = {
    "string": _STRING,
    "boolean": TypeNode(NodeKind.SCALAR, "bool", scalar=Scalar.BOOL),
    "integer": TypeNode(NodeKind.SCALAR, "int64", scalar=Scalar.INT64),
    "number": TypeNode(NodeKind.SCALAR, "float64", scalar=Scalar.FLOAT64),
}


def object_type(schema: Structural | None, *, preserve_unknown_fields: bool) -> TypeNode | None:
    """None where the schema says nothing about the object's fields, so that apply deduces them from the object."""
    if schema is None or preserve_unknown_fields:
        return None
    if schema.preserves_unknown_fields and not schema.properties:
        return None
    fields = {name: Field(name, node_of(child)) for name, child in schema.properties.items()}
    fields |= {"apiVersion": Field("apiVersion", _STRING), "kind": Field("kind", _STRING)}
    fields["metadata"] = Field("metadata", object_meta_type())
    return TypeNode(NodeKind.STRUCT, "", fields=fields, map_type=schema.map_type)


def node_of(schema: Structural) -> TypeNode:
    if schema.int_or_string or not schema.type:
        return _ANYTHING
    if schema.type == "array":
        return _list(schema)
    if schema.type == "object":
        return _object(schema)
    return _SCALARS.get(schema.type, _ANYTHING)


def _list(schema: Structural) -> TypeNode:
    element = node_of(schema.items) if schema.items is not None else _ANYTHING
    return TypeNode(
        NodeKind.LIST, "", element=element, list_type=schema.list_type or "atomic", map_keys=schema.map_keys
    )


def _object(schema: Structural) -> TypeNode:
    if schema.embedded_resource:
        return _embedded(schema)
    if schema.properties and not schema.preserves_unknown_fields:
        fields = {name: Field(name, node_of(child)) for name, child in schema.properties.items()}
        return TypeNode(NodeKind.STRUCT, "", fields=fields, map_type=schema.map_type)
    element = node_of(schema.additional) if schema.additional is not None else _ANYTHING
    return TypeNode(NodeKind.MAP, "", element=element, map_type=schema.map_type)


def _embedded(schema: Structural) -> TypeNode:
    if schema.preserves_unknown_fields:
        return _ANYTHING
    fields = {name: Field(name, node_of(child)) for name, child in schema.properties.items()}
    fields |= {"apiVersion": Field("apiVersion", _STRING), "kind": Field("kind", _STRING)}
    fields["metadata"] = Field("metadata", object_meta_type())
    return TypeNode(NodeKind.STRUCT, "", fields=fields, map_type=schema.map_type)
