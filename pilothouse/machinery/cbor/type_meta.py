"""The kind and version that an object in CBOR names, also of one that can not be read beyond them."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.cbor.decoding import decode, word_for
from pilothouse.machinery.cbor.wellformed import CborError, end_of_item
from pilothouse.machinery.cbor.wire import MAP, TAG
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind

_NAMES = ("apiVersion", "kind")


def named_by(value: Any) -> GroupVersionKind:
    """Return the type that a decoded value names; a version that is none counts as none. Raises CborError."""
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
    """Return the type that is named in a well-formed data item, whatever else stands there. Raises CborError."""
    at = 0
    while data[at] >> 5 == TAG:
        at += _length_of_head(data, at)
    return named_by(_names_of_map(data, at) if data[at] >> 5 == MAP else decode(data, tell_bytes=True))


def _names_of_map(data: bytes, at: int) -> dict[str, Any]:
    """The members that name the type, and the keys of the others."""
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
