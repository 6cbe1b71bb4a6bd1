"""Conversion of untyped objects to typed objects, as upstream's unstructured converter after strategic merges and
applies.

The messages differ from the JSON decoder's. Fields are visited in Go's order up to the first error; unknown fields are
reported in alphabetical order.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pilothouse.machinery.codec.document import Literal, is_array, is_object, members, plain
from pilothouse.machinery.gofmt import go_type
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.scalars import INTEGERS, base64_fault, canonical_quantity

_GO_KINDS = {"[]interface {}": "slice", "map[string]interface {}": "map"}
_WANTED = {NodeKind.STRUCT: "map", NodeKind.MAP: "map", NodeKind.LIST: "slice"}
_PLAIN = {Scalar.STRING: str, Scalar.BOOL: bool, Scalar.INT32: int, Scalar.INT64: int, Scalar.FLOAT64: float}


class ConversionError(ValueError):
    """A failed conversion; the message is Go's."""


class Conversion:
    """Converts one object; `unknown` collects unknown fields."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def value(self, node: TypeNode, value: Any, path: str = "") -> Any:
        if value is None or node.kind is NodeKind.ANY:
            return value
        if node.kind is NodeKind.SCALAR:
            return _scalar(node, value)
        if _GO_KINDS.get(go_type(value)) != _WANTED[node.kind]:
            raise ConversionError(_cannot_restore(node.kind, value))
        if node.kind is NodeKind.STRUCT:
            prefix = f"{path}." if path else ""
            out = {
                name: self.value(field.node, value[name], prefix + name)
                for name, field in node.fields.items()
                if name in value
            }
            self.unknown += [prefix + name for name in value if name not in node.fields]
            return out
        assert node.element is not None
        if node.kind is NodeKind.MAP:
            # Upstream's path has no map keys.
            return {key: self.value(node.element, member, path) for key, member in value.items()}
        return [self.value(node.element, item, f"{path}[{at}]") for at, item in enumerate(value)]

    @property
    def strict_errors(self) -> tuple[str, ...]:
        return tuple(sorted(f'unknown field "{path}"' for path in self.unknown))


def _cannot_restore(kind: NodeKind, value: Any) -> str:
    actual = _GO_KINDS.get(go_type(value), go_type(value))
    return {
        NodeKind.STRUCT: f"cannot restore struct from: {actual}",
        NodeKind.MAP: f"cannot restore map from {actual}",
        NodeKind.LIST: f"cannot restore slice from {actual}",
    }[kind]


def _scalar(node: TypeNode, value: Any) -> Any:
    if node.scalar is Scalar.BYTES:
        if isinstance(value, str):
            fault = base64_fault(value)
            if fault is not None:
                raise ConversionError(f"error decoding from json: illegal base64 data at input byte {fault}")
            return value
        if not isinstance(value, list):
            raise ConversionError(_cannot_restore(NodeKind.LIST, value))
        return [None if item is None else _octet(item) for item in value]
    if node.scalar is Scalar.QUANTITY and type(value) in (int, float):
        value = _as_json(value)
    if node.scalar not in _PLAIN:
        report = examine(node, value)
        if report.error:
            raise ConversionError(report.error)
        return collapse(node, value)
    if node.scalar in INTEGERS and type(value) in (int, float):
        if value != int(value):
            raise ConversionError(f"cannot convert float64 to {node.go_type}")
        limit, longest = INTEGERS[node.scalar], INTEGERS[Scalar.INT64]
        # As Go's conversions on amd64: a float beyond int64 becomes the smallest int64, then excess bits are cut off.
        whole = int(value) if -longest <= value < longest else -longest
        return (whole + limit) % (2 * limit) - limit
    if type(value) is _PLAIN[node.scalar] or (node.scalar is Scalar.FLOAT64 and type(value) is int):
        return value
    if node.scalar is Scalar.STRING and type(value) is int:
        raise ConversionError(f"cannot convert int64 to {node.go_type}")
    raise ConversionError(f"unrecognized type: {node.scalar.value}")


def _as_json(number: float) -> float:
    """Spell a number beyond int64 as Go prints floats: without an exponent unless very large or very small."""
    if type(number) is int and -INTEGERS[Scalar.INT64] <= number < INTEGERS[Scalar.INT64]:
        return number
    written_out = 1e-6 <= abs(number) < 1e21
    return Literal.of(format(Decimal(repr(float(number))), "f").removesuffix(".0")) if written_out else number


def _octet(value: Any) -> int:
    if type(value) not in (int, float):
        raise ConversionError("unrecognized type: uint8")
    if value != int(value):
        raise ConversionError("cannot convert float64 to uint8")
    return int(value) % 256


def collapse(node: TypeNode, value: Any) -> Any:
    """Merge duplicate members of a document. `value` must fit the type; parts of another kind stay unchanged."""
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
    """Fast path for strings, the most frequent values."""
    return type(value) is str and node.scalar is not Scalar.QUANTITY


def _struct(node: TypeNode, out: Json, value: Any) -> Json:
    for key, member in members(value):
        field = node.fields.get(key)
        if field is not None:
            out[key] = _again(field, out[key], member) if key in out else collapse(field.node, member)
    return out


def _again(field: Field, old: Any, member: Any) -> Any:
    """Return the field's value after a duplicate member."""
    node = field.node
    if member is None:
        return None if field.pointer or node.kind in (NodeKind.MAP, NodeKind.LIST) else old
    if old is None or not is_object(member):
        return collapse(node, member)
    if node.kind is NodeKind.STRUCT:
        return _struct(node, old, member)
    return old | collapse(node, member) if node.kind is NodeKind.MAP else collapse(node, member)
