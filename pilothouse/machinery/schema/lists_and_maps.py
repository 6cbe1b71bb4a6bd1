"""In-place decoders of lists and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.scalars import Mismatch, string

Decode: TypeAlias = Callable[[Any], Any]
Zero: TypeAlias = Callable[[], Any]

OMIT: Any = object()
"""Sentinel of decoders: the field equals an unset field."""


class EmptyMap(dict[str, Any]):
    """A map sent without entries. Semantically equal to a missing map, unlike an empty struct."""


def collection_decoder(
    node: TypeNode, decoder_of: Callable[[TypeNode], Decode], zero_of: Callable[[TypeNode], Zero]
) -> Decode:
    assert node.element is not None
    is_list = node.kind is NodeKind.LIST
    if node.element.scalar is Scalar.STRING:
        return _strings if is_list else _string_map
    # Protobuf has no null inside a map of bytes.
    zero = str if node.element.scalar is Scalar.BYTES else zero_of(node.element)
    return (_list if is_list else _map)(decoder_of(node.element), zero)


def _strings(raw: Any) -> Any:
    if type(raw) is not list:
        raise Mismatch
    for value in raw:
        if type(value) is not str:
            raw[:] = ["" if item is None else string(item) for item in raw]
            break
    return raw


def _string_map(raw: Any) -> Any:
    if type(raw) is not dict:
        return _empty_map(raw)
    for key, value in raw.items():
        if type(value) is not str:
            if value is not None:
                raise Mismatch
            raw[key] = ""
    return raw or EmptyMap()


def _list(decode_element: Decode, zero: Zero) -> Decode:
    def decode(raw: Any) -> Any:
        if type(raw) is not list:
            raise Mismatch
        for at, value in enumerate(raw):
            new = zero() if value is None else decode_element(value)
            if new is not value:
                raw[at] = new
        return raw

    return decode


def _map(decode_element: Decode, zero: Zero) -> Decode:
    def decode(raw: Any) -> Any:
        if type(raw) is not dict:
            return _empty_map(raw)
        for key, value in raw.items():
            new = zero() if value is None else decode_element(value)
            if new is not value:
                raw[key] = new
        return raw or EmptyMap()

    return decode


def _empty_map(raw: Any) -> EmptyMap:
    """Accept an EmptyMap: objects may be decoded again, in another version."""
    if type(raw) is not EmptyMap or raw:
        raise Mismatch
    return raw
