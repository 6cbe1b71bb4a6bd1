"""Objects in JSON form to and from Kubernetes' protobuf, byte for byte as upstream writes it.

    encode(pod)                                     the message in its envelope
    envelope(gvk, encode_raw(pod, gvk))             the same in two steps, so that the message can be kept and reused
    envelope(list_gvk, list_raw(list_meta, raws))   a list from messages that were already written

Everything that can be wrong with bytes or object is a ProtobufError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.protobuf.errors import ProtobufError
from pilothouse.machinery.protobuf.messages import message_type
from pilothouse.machinery.protobuf.scan import Raw, bytes_of, fields_of, text_of
from pilothouse.machinery.protobuf.wire import TRUNCATED, delimited, read_size, varint
from pilothouse.machinery.wire_facts.facts import is_kind
from pilothouse.machinery.wire_facts.kinds import META, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import MessageType

MAGIC = b"k8s\x00"
"""What every Kubernetes protobuf message begins with."""

_API_VERSION, _KIND = 0x0A, 0x12  # of runtime.TypeMeta
_TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE = 0x0A, 0x12, 0x1A, 0x22  # of runtime.Unknown
_NO_CONTENT_NAMES = b"\x1a\x00\x22\x00"
_LIST_META, _ITEM = b"\x0a", b"\x12"  # of every list

_UNREADABLE = (IndexError, ValueError, OverflowError, RecursionError)
_UNWRITABLE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True)
class _Kind:
    message: MessageType
    type_meta: Json  # kind and apiVersion, as the JSON form begins; empty for a WatchEvent, whose form has neither


def supports(gvk: GroupVersionKind) -> bool:
    """Whether upstream has a protobuf form for the kind. Tables and custom resources have none."""
    return message_of(gvk) is not None


def encode(obj: Json) -> bytes:
    """The object under its own apiVersion and kind, in its envelope."""
    gvk = gvk_of(obj)
    return envelope(gvk, encode_raw(obj, gvk))


def encode_raw(obj: Json, gvk: GroupVersionKind) -> bytes:
    """The message alone. The kind is not part of it."""
    return _write(_kind(gvk).message, obj, gvk.kind)


def envelope(gvk: GroupVersionKind, raw: bytes) -> bytes:
    return b"".join((_envelope_head(gvk), varint(len(raw)), raw, _NO_CONTENT_NAMES))


def list_raw(list_meta: Json, items: Iterable[bytes]) -> bytes:
    """A list's message, from its metadata and its items' messages."""
    return b"".join(_list_parts(list_meta, items))


def stream_list(gvk: GroupVersionKind, list_meta: Json, items: Iterable[bytes]) -> Iterator[bytes]:
    """An enveloped list piece by piece, its items not copied."""
    parts = _list_parts(list_meta, items)
    yield _envelope_head(gvk) + varint(sum(map(len, parts)))
    yield from parts
    yield _NO_CONTENT_NAMES


def decode(data: bytes, *, default: GroupVersionKind | None = None) -> Json:
    """The object in an envelope. What the envelope does not say of its kind is taken from the default."""
    if not data:
        raise ProtobufError("empty data")
    if not data.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if len(data) == len(MAGIC):
        raise ProtobufError("empty body")
    opened = _open(data)
    return decode_raw(opened.raw, _kind_in(opened.type_meta, default))


def decode_raw(raw: bytes, gvk: GroupVersionKind) -> Json:
    """The object of a message without envelope."""
    kind = _kind(gvk)
    try:
        body: Json = kind.message.read(raw, 0, len(raw), None, 0)
    except _UNREADABLE as error:
        raise _unreadable(error) from error
    return {**kind.type_meta, **body}


def gvk_of(obj: Json) -> GroupVersionKind:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ProtobufError("an object without apiVersion and kind cannot be encoded")
    return _group_version(api_version).kind(kind)


@dataclass(slots=True)
class _Opened:
    type_meta: bytes
    raw: bytes


def _open(data: bytes) -> _Opened:
    """The parts of an envelope. Encoders write both, in this order; other orders take the longer way."""
    try:
        size, pos = read_size(data, len(MAGIC) + 1)
        middle = pos + size
        size, start = read_size(data, middle + 1)
        if data[len(MAGIC)] == _TYPE_META and data[middle] == _RAW and data[start + size :] == _NO_CONTENT_NAMES:
            return _Opened(data[pos:middle], data[start : start + size])
    except IndexError:
        pass
    found = _fields_of(data[len(MAGIC) :], _TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE)
    return _Opened(bytes_of(found, _TYPE_META), bytes_of(found, _RAW))


def _list_parts(list_meta: Json, items: Iterable[bytes]) -> list[bytes]:
    parts = [delimited(_LIST_META, _write(message_type(f"{META}.ListMeta"), list_meta, "ListMeta"))]
    for item in items:
        parts += _ITEM + varint(len(item)), item
    return parts


@lru_cache(maxsize=1024)
def _envelope_head(gvk: GroupVersionKind) -> bytes:
    """All that comes before the length of the message."""
    type_meta = delimited(b"\x0a", gvk.api_version.encode()) + delimited(b"\x12", gvk.kind.encode())
    return MAGIC + delimited(b"\x0a", type_meta) + b"\x12"


@lru_cache(maxsize=1024)
def _kind_in(type_meta: bytes, default: GroupVersionKind | None) -> GroupVersionKind:
    """The kind defaults by itself; group and version default together."""
    found = _fields_of(type_meta, _API_VERSION, _KIND)
    api_version, kind = text_of(found, _API_VERSION), text_of(found, _KIND)
    version = _group_version(api_version)
    printed = f"runtime.TypeMeta{{APIVersion:{quote(api_version)}, Kind:{quote(kind)}}}"
    if default is not None:
        version = version if version.version else default.group_version
        kind = kind or default.kind
    if not kind:
        raise ProtobufError(f"Object 'Kind' is missing in '{printed}'")
    if not version.version:
        raise ProtobufError(f"Object 'apiVersion' is missing in '{printed}'")
    return version.kind(kind)


@lru_cache(maxsize=1024)
def _group_version(api_version: str) -> GroupVersion:
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise ProtobufError(str(error)) from error


@lru_cache(maxsize=1024)
def _kind(gvk: GroupVersionKind) -> _Kind:
    name = message_of(gvk)
    if name is None:
        raise ProtobufError(f"no kind {quote(gvk.kind)} is registered for version {quote(gvk.api_version)}")
    has_type_meta = is_kind(name.package, name.message)
    return _Kind(message_type(str(name)), {"kind": gvk.kind, "apiVersion": gvk.api_version} if has_type_meta else {})


def _write(message: MessageType, obj: Json, what: str) -> bytes:
    try:
        return message.write(obj)
    except _UNWRITABLE as error:
        raise ProtobufError(f"{what} cannot be written as protobuf: {error}") from error


def _fields_of(data: bytes, *known: int) -> dict[int, Raw]:
    try:
        return fields_of(data, *known)
    except _UNREADABLE as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> ProtobufError:
    return ProtobufError(TRUNCATED if isinstance(error, IndexError) else str(error))
