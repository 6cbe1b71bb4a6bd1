"""Codec between JSON objects and Kubernetes' protobuf, byte for byte as upstream.

    encode(pod)                              the message in its envelope
    envelope(gvk, encode_raw(pod, gvk))      the same in two steps, so that the message can be cached
    ListPieces(list_gvk, list_meta)          a list from encoded messages, a few at a time

Every failure of encoding or decoding is a ProtobufError.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind, not_registered
from pilothouse.machinery.protobuf.envelope import (
    ENVELOPE_END,
    envelope,
    envelope_head,
    group_version,
    kind_in,
    open_envelope,
)
from pilothouse.machinery.protobuf.messages import message_type
from pilothouse.machinery.protobuf.wire import BYTES, TRUNCATED, ProtobufError, delimited, tag, varint
from pilothouse.machinery.wire_facts import META, MessageName, facts_of, is_kind, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import MessageType

_UNVERSIONED = ("APIVersions", "APIResourceList")
_UNREADABLE = (IndexError, ValueError, OverflowError, RecursionError)
_UNWRITABLE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True)
class _Kind:
    message: MessageType
    type_meta: Json  # kind and apiVersion, the first fields of the JSON object; empty for a WatchEvent


@dataclass(frozen=True, slots=True)
class _ListLayout:
    """Field tags of a list: 1 and 2, swapped in meta.k8s.io/v1beta1."""

    metadata: bytes
    item: bytes


class ListPieces:
    """An enveloped list in pieces, without copies of its messages: `head`, one `item` per message, `tail`."""

    def __init__(self, gvk: GroupVersionKind, list_meta: Json) -> None:
        layout = _list_layout(gvk.group, gvk.version, gvk.kind)
        written = delimited(layout.metadata, _write(message_type(f"{META}.ListMeta"), list_meta, "ListMeta"))
        self._gvk = gvk
        self._tag = layout.item
        self._before, self._after = (written, b"") if layout.metadata < layout.item else (b"", written)

    def head(self, sizes: Iterable[int]) -> bytes:
        """Return the head. The envelope contains the length of the list, so the sizes of all messages must be known."""
        items = sum(len(self._tag) + len(varint(size)) + size for size in sizes)
        return envelope_head(self._gvk, len(self._before) + items + len(self._after)) + self._before

    def item(self, message: bytes) -> tuple[bytes, bytes]:
        return self._tag + varint(len(message)), message

    def tail(self) -> bytes:
        return self._after + ENVELOPE_END


def supports(gvk: GroupVersionKind) -> bool:
    """Return whether upstream has a protobuf form of the kind. Tables and custom resources have no protobuf form."""
    return message_of(gvk) is not None


def encode(obj: Json) -> bytes:
    """Encode the object under its own apiVersion and kind, with its envelope.

    Discovery of the legacy group has no version: the messages are v1's, and the envelope has no version either.
    """
    if obj.get("kind") in _UNVERSIONED and "apiVersion" not in obj:
        unversioned = GroupVersionKind("", "", obj["kind"])
        return envelope(unversioned, encode_raw(obj, replace(unversioned, version="v1")))
    gvk = gvk_of(obj)
    return envelope(gvk, encode_raw(obj, gvk))


def encode_raw(obj: Json, gvk: GroupVersionKind) -> bytes:
    """Encode the message alone, without its kind."""
    return _write(_kind(gvk.group, gvk.version, gvk.kind).message, obj, gvk.kind)


def decode(data: bytes, *, default: GroupVersionKind | None = None) -> Json:
    """Decode an enveloped object. The default replaces missing parts of the kind."""
    opened = open_envelope(data)
    return decode_raw(opened.raw, kind_in(opened.type_meta, default))


def decode_raw(raw: bytes, gvk: GroupVersionKind) -> Json:
    """Decode a message without an envelope."""
    kind = _kind(gvk.group, gvk.version, gvk.kind)
    try:
        body: Json = kind.message.read(raw, 0, len(raw), None, 0)
    except _UNREADABLE as error:
        raise ProtobufError(TRUNCATED if isinstance(error, IndexError) else str(error)) from error
    return {**kind.type_meta, **body}


def gvk_of(obj: Json) -> GroupVersionKind:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ProtobufError("an object without apiVersion and kind cannot be encoded")
    return group_version(api_version).kind(kind)


@bounded_cache(entries=1024, key_bytes=256)
def _list_layout(group: str, version: str, kind: str) -> _ListLayout:
    name = _message_name(GroupVersionKind(group, version, kind))
    facts = facts_of(name.package, name.message)
    if "items" not in facts or "metadata" not in facts:
        raise ProtobufError(f"{kind} is no list")
    return _ListLayout(tag(facts["metadata"].number, BYTES), tag(facts["items"].number, BYTES))


@bounded_cache(entries=1024, key_bytes=256)
def _kind(group: str, version: str, kind: str) -> _Kind:
    gvk = GroupVersionKind(group, version, kind)
    name = _message_name(gvk)
    has_type_meta = is_kind(name.package, name.message)
    return _Kind(message_type(str(name)), {"kind": gvk.kind, "apiVersion": gvk.api_version} if has_type_meta else {})


def _message_name(gvk: GroupVersionKind) -> MessageName:
    name = message_of(gvk)
    if name is None:
        raise ProtobufError(not_registered(gvk.kind, gvk.api_version))
    return name


def _write(message: MessageType, obj: Json, name: str) -> bytes:
    try:
        return message.write(obj)
    except _UNWRITABLE as error:
        raise ProtobufError(f"{name} cannot be written as protobuf: {error}") from error
