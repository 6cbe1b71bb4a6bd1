"""Compiler from type trees to closures that decode a value in place, into the content of Go's structs.

Nulls are removed. Zero values are removed if the field has omitempty and Go cannot distinguish zero from unset. Fields
that Go always prints are added. Empty lists, maps and bytes stay, because Go distinguishes empty from nil until it
prints (`printing.py`). Values of the wrong type and unknown fields raise Mismatch: this is the fast path for valid
requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.lists_and_maps import OMIT, Decode, Zero, collection_decoder
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.scalars import DECODERS, ZEROS, Mismatch, boolean, string

_WITHOUT_EMPTY_FORM = frozenset(
    {Scalar.TIME, Scalar.MICRO_TIME, Scalar.QUANTITY, Scalar.INT_OR_STRING},
)
"""Structs in Go, to which omitempty does not apply."""

_compiled: dict[TypeNode, Decode] = {}


def decoder_of(node: TypeNode) -> Decode:
    """Return the decoder of non-null values of the type."""
    decoder = _compiled.get(node)
    if decoder is None:
        decoder = _compiled[node] = _compile(node)
    return decoder


def zero_of(node: TypeNode) -> Zero:
    """Return a factory of Go's output for an unset value of the type."""
    if node.kind is NodeKind.STRUCT:
        return lambda: decoder_of(node)({})
    zero = ZEROS.get(node.scalar) if node.scalar else None
    return lambda: zero


def _compile(node: TypeNode) -> Decode:
    if node.kind is NodeKind.STRUCT:
        return _struct(node)
    if node.kind is NodeKind.ANY:
        return _keep
    if node.kind is NodeKind.SCALAR:
        assert node.scalar is not None
        return union_decoder(node, decoder_of) if node.element else DECODERS[node.scalar]
    return collection_decoder(node, decoder_of, zero_of)


def _keep(value: Any) -> Any:
    return value


def _struct(node: TypeNode) -> Decode:
    steps: dict[str, Any] = {}
    step_of = steps.get
    always: list[tuple[str, Zero]] = []

    def decode(raw: Any) -> Json:
        checkpoint()
        if type(raw) is not dict:
            raise Mismatch
        absent = []
        for key, value in raw.items():
            step = step_of(key)
            # Most fields are strings with omitempty: avoid a call for them.
            if step is str:
                if type(value) is str and value:
                    continue
                if value is not None and value != "":
                    raise Mismatch
                absent.append(key)
            elif step is None:
                raise Mismatch
            elif value is None:
                absent.append(key)
            elif (new := step(value)) is not value:
                if new is OMIT:
                    absent.append(key)
                else:
                    raw[key] = new
        if absent:
            for key in absent:
                del raw[key]
        for key, zero in always:
            if key not in raw:
                raw[key] = zero()
        return raw

    # Register the decoder before the fields are compiled: types may be recursive.
    _compiled[node] = decode
    steps |= {field.name: _step(field) for field in node.fields.values()}
    always += [
        (field.name, (_nothing if field.pointer else zero_of(field.node)))
        for field in node.fields.values()
        if _is_always_printed(field)
    ]
    return decode


def _is_always_printed(field: Field) -> bool:
    if field.omitzero:
        return False
    return not field.omitempty or (not field.pointer and not has_empty_form(field.node))


def has_empty_form(node: TypeNode) -> bool:
    """Return whether omitempty can omit a value of the type."""
    if node.kind in (NodeKind.LIST, NodeKind.MAP):
        return True
    return node.kind is NodeKind.SCALAR and node.scalar not in _WITHOUT_EMPTY_FORM and node.element is None


def _is_value(node: TypeNode) -> bool:
    """Return whether a Go variable of the type cannot be nil, so that zero equals unset."""
    return node.kind is NodeKind.SCALAR and node.scalar is not Scalar.BYTES and has_empty_form(node)


def _nothing() -> None:
    return None


def _step(field: Field) -> Any:
    """Return the decoder of a non-null field value, or `str` for a string whose zero value equals unset."""
    if field.omitzero:
        decode = decoder_of(field.node)
        zero = zero_of(field.node)

        def step(value: Any) -> Any:
            new = decode(value)
            return OMIT if new == zero() else new

        return step
    if field.omitempty and not field.pointer and _is_value(field.node):
        return str if field.node.scalar is Scalar.STRING else _unless_empty(decoder_of(field.node))
    may_print_null = field.node.scalar in (Scalar.TIME, Scalar.MICRO_TIME) or field.node.element is not None
    if field.pointer and field.omitempty and may_print_null:
        return _unless_null(decoder_of(field.node))
    return decoder_of(field.node)


def _unless_null(decode: Decode) -> Decode:
    """Omit pointers to values that print as null: the round trip through the store drops them before the response."""

    def step(value: Any) -> Any:
        new = decode(value)
        return OMIT if new is None else new

    return step


def _unless_empty(decode: Decode) -> Decode:
    return lambda value: decode(value) or OMIT


def union_decoder(node: TypeNode, decoder_of: Callable[[TypeNode], Decode]) -> Decode:
    assert node.element is not None
    schema = node.element

    def decode(value: Any) -> Any:
        if type(value) is dict:
            return decoder_of(schema)(value)
        if node.scalar is Scalar.SCHEMA_OR_BOOL:
            return boolean(value)
        if type(value) is not list:
            return None
        if not value:  # Go distinguishes a missing schema from an empty list of schemas, until they are printed
            return [] if node.scalar is Scalar.SCHEMA_OR_ARRAY else None
        one = string if node.scalar is Scalar.SCHEMA_OR_STRINGS else decoder_of(schema)
        return [
            ("" if node.scalar is Scalar.SCHEMA_OR_STRINGS else {}) if item is None else one(item) for item in value
        ]

    return decode
