"""CBOR decoding into built-in types, with the error messages of upstream's CBOR library.

Upstream reports a single unknown field, by its index in the map. Fields of a map precede fields of nested maps.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cbor.decoding import ByteText, decode, word_for
from pilothouse.machinery.cbor.wellformed import MAP, TAG, CborError, end_of_item
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.byte_fields import bytes_in
from pilothouse.machinery.schema.convert import collapse
from pilothouse.machinery.schema.examine import TypeProblem, problem_of
from pilothouse.machinery.schema.nodes import NodeKind, TypeNode
from pilothouse.machinery.schema.object_type import Decoded, DecodeError, ObjectType
from pilothouse.machinery.schema.scalars import Mismatch

_BASE64 = "cbor: failed to decode base64 from byte string: "


def decode_typed(kind: ObjectType, value: Json, data: bytes) -> Decoded:
    """Fit a decoded body to its type. Raises DecodeError."""
    try:
        decoded = Decoded(kind.fit(value))
    except Mismatch:
        decoded = _decode_exactly(kind, value, data)
    _refuse_text_for_bytes(kind, data, decoded.obj)
    return decoded


def _refuse_text_for_bytes(kind: ObjectType, data: bytes, obj: Json) -> None:
    """Reject text strings in byte fields. Byte strings must contain base64 unless a tag says otherwise. Raises
    DecodeError."""
    if kind.byte_fields is None or not any(True for _ in bytes_in(kind.byte_fields, obj)):
        return
    for field, value in decode(data, typed=True, tell_bytes=True).items():
        way = (kind.byte_fields.fields or {}).get(field)
        found = bytes_in(way, value) if way is not None else iter(())
        text = next((one for one in found if not isinstance(one, ByteText)), None)
        if text is not None:
            raise DecodeError(_told(kind, TypeProblem("string", "[]uint8", stack=(field,), offender=text)))


def _decode_exactly(kind: ObjectType, value: Json, data: bytes) -> Decoded:
    """Decode a body that failed the fast path."""
    problem = problem_of(kind.node, value)
    if problem is not None:
        if isinstance(problem, TypeProblem) and isinstance(problem.offender, str):  # text or bytes?
            problem = problem_of(kind.node, decode(data, typed=True, tell_bytes=True))
        raise DecodeError(_told(kind, problem))
    unknown = _first_unknown(kind.node, value)
    strict = () if unknown is None else (f"cbor: found unknown field at map element index {unknown}",)
    return Decoded(kind.fit(collapse(kind.node, value)), strict)


def _told(kind: ObjectType, problem: TypeProblem | str | None) -> str:
    """Format the problem; only the outermost field is named."""
    assert problem is not None
    if isinstance(problem, str):
        return f"{_BASE64}{problem}" if problem.startswith("illegal base64") else problem
    target = f"struct field {kind.node.go_type}.{problem.stack[0]}" if problem.stack else "value"
    return f"cbor: cannot unmarshal {word_for(problem.offender)} into Go {target} of type {problem.go_type}"


def _first_unknown(node: TypeNode, value: Any) -> int | None:
    checkpoint()
    if node.kind is NodeKind.STRUCT and isinstance(value, dict):
        own = next((index for index, key in enumerate(value) if key not in node.fields), None)
        if own is not None:
            return own
        below = (_first_unknown(node.fields[key].node, member) for key, member in value.items())
        return next((index for index in below if index is not None), None)
    if node.kind is NodeKind.LIST and isinstance(value, list):
        members = value
    elif node.kind is NodeKind.MAP and isinstance(value, dict):
        members = list(value.values())
    else:
        return None
    assert node.element is not None
    found = (_first_unknown(node.element, member) for member in members)
    return next((index for index in found if index is not None), None)


_NAMES = ("apiVersion", "kind")


def named_by(value: Any) -> GroupVersionKind:
    """Return the group, version and kind of a decoded value; an invalid apiVersion counts as empty. Raises
    CborError."""
    if value is None:
        return GroupVersionKind("", "", "")
    if not isinstance(value, dict):
        how = " (cannot decode CBOR array to struct without toarray option)" if isinstance(value, list) else ""
        raise CborError(f"cbor: cannot unmarshal {word_for(value)} into Go value of type v1.TypeMeta{how}")
    for name in _NAMES:
        member = value.get(name)
        if member is not None and not isinstance(member, str):
            raise CborError(
                f"cbor: cannot unmarshal {word_for(member)} into Go struct field v1.TypeMeta.{name} of type string"
            )
    kind = value.get("kind") or ""
    try:
        return GroupVersion.parse(value.get("apiVersion") or "").kind(kind)
    except ValueError:
        return GroupVersionKind("", "", kind)


def named_in(data: bytes) -> GroupVersionKind:
    """Return the group, version and kind of a well-formed data item without decoding the rest. Raises CborError."""
    at = 0
    while data[at] >> 5 == TAG:
        at += _length_of_head(data, at)
    return named_by(_names_of_map(data, at) if data[at] >> 5 == MAP else decode(data, tell_bytes=True))


def _names_of_map(data: bytes, at: int) -> dict[str, Any]:
    """Return apiVersion and kind with their values, and the other keys without."""
    end = end_of_item(data, at) - (data[at] & 31 == 31)
    at += _length_of_head(data, at)
    found: dict[str, Any] = {}
    while at < end:
        value_at = end_of_item(data, at)
        key, at = decode(data[at:value_at]), end_of_item(data, value_at)
        if key in found:
            raise CborError(f"cbor: found duplicate map key {quote(key)} at map element index {len(found)}")
        found[key] = decode(data[value_at:at], typed=True, tell_bytes=True) if key in _NAMES else None
    return found


def _length_of_head(data: bytes, at: int) -> int:
    info = data[at] & 31
    return 1 + (1 << (info - 24)) if 24 <= info < 28 else 1
