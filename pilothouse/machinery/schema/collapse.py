"""A document with duplicate keys to the one value that Go would decode it into, without the fields that the type lacks.

Go decodes a second member into what the first one left: structs and maps grow, everything else is replaced.

    {"metadata": {"name": "a"}, "metadata": {"labels": {}}}   → {"metadata": {"name": "a", "labels": {}}}
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.codec.document import is_array, is_object, members, plain
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.quantities import canonical_quantity


def collapse(node: TypeNode, value: Any) -> Any:
    """`value` must fit the type; what is not a value of the type's kind is left alone."""
    if node.kind is NodeKind.STRUCT and is_object(value):
        return _struct(node, {}, value)
    if node.kind is NodeKind.MAP and is_object(value):
        element = _element(node)
        return {key: member if _stays(element, member) else collapse(element, member) for key, member in members(value)}
    if node.kind in (NodeKind.LIST, NodeKind.SCALAR) and node.element and is_array(value):
        element = _element(node)
        return [item if _stays(element, item) else collapse(element, item) for item in value]
    if node.kind is NodeKind.SCALAR and node.element and is_object(value):
        return collapse(node.element, value)
    if node.scalar is Scalar.QUANTITY and value is not None:
        return canonical_quantity(value)
    return plain(value)


def _element(node: TypeNode) -> TypeNode:
    assert node.element is not None
    return node.element


def _stays(node: TypeNode, value: Any) -> bool:
    """Most values are strings, so that those cost no more than this."""
    return type(value) is str and node.scalar is not Scalar.QUANTITY


def _struct(node: TypeNode, out: Json, value: Any) -> Json:
    for key, member in members(value):
        field = node.fields.get(key)
        if field is not None:
            out[key] = _again(field, out[key], member) if key in out else collapse(field.node, member)
    return out


def _again(field: Field, old: Any, member: Any) -> Any:
    """The field's value after a second member with its name."""
    node = field.node
    if member is None:
        return None if field.pointer or node.kind in (NodeKind.MAP, NodeKind.LIST) else old
    if old is None or not is_object(member):
        return collapse(node, member)
    if node.kind is NodeKind.STRUCT:
        return _struct(node, old, member)
    return old | collapse(node, member) if node.kind is NodeKind.MAP else collapse(node, member)
