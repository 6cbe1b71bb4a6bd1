"""Envelopes and watch frames.

Every message has an envelope: magic bytes, then runtime.Unknown with kind and message. A watch stream contains
WatchEvent messages, each after its length in four bytes, big-endian. The object of an event has its own envelope, since
a stream may carry several kinds (bookmarks, Status).
"""

from __future__ import annotations

from contextlib import suppress

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.protobuf.wire import (
    TRUNCATED,
    ProtobufError,
    Raw,
    bytes_of,
    delimited,
    fields_of,
    read_size,
    text_of,
    varint,
)

MAGIC = b"k8s\x00"
"""First bytes of every Kubernetes protobuf message."""

_API_VERSION, _KIND = 0x0A, 0x12  # of runtime.TypeMeta
_TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE = 0x0A, 0x12, 0x1A, 0x22  # of runtime.Unknown
ENVELOPE_END = b"\x1a\x00\x22\x00"  # no content encoding, no content type


@dataclass(slots=True)
class Envelope:
    """Content of an envelope: the encoded TypeMeta and the object's message."""

    type_meta: bytes
    raw: bytes


def envelope(gvk: GroupVersionKind, raw: bytes) -> bytes:
    return b"".join((envelope_head(gvk, len(raw)), raw, ENVELOPE_END))


def envelope_head(gvk: GroupVersionKind, size: int) -> bytes:
    """Return all bytes before a message of this size. ENVELOPE_END follows the message."""
    return _head(gvk.group, gvk.version, gvk.kind) + varint(size)


def open_envelope(data: bytes) -> Envelope:
    if not data:
        raise ProtobufError("empty data")
    if not data.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if len(data) == len(MAGIC):
        raise ProtobufError("empty body")
    return _open_usual(data) or _open_any(data)


@bounded_cache(entries=1024, key_bytes=256, chosen=1)
def kind_in(type_meta: bytes, default: GroupVersionKind | None) -> GroupVersionKind:
    """Decode the kind. A missing kind and a missing apiVersion default independently."""
    fields = _fields_of(type_meta, _API_VERSION, _KIND)
    named = group_version(text_of(fields, _API_VERSION)).kind(text_of(fields, _KIND))
    version, kind = named.group_version, named.kind
    if default is not None:
        version = version if version.version else default.group_version
        kind = kind or default.kind
    if kind and version.version:
        return version.kind(kind)
    missing = "apiVersion" if kind else "Kind"
    printed = f"runtime.TypeMeta{{APIVersion:{quote(named.api_version)}, Kind:{quote(named.kind)}}}"
    raise ProtobufError(f"Object '{missing}' is missing in '{printed}'")


def group_version(api_version: str) -> GroupVersion:
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise ProtobufError(str(error)) from error


@bounded_cache(entries=1024, key_bytes=256)
def _head(group: str, version: str, kind: str) -> bytes:
    """Return all bytes before the length of the message."""
    type_meta = delimited(b"\x0a", str(GroupVersion(group, version)).encode()) + delimited(b"\x12", kind.encode())
    return MAGIC + delimited(b"\x0a", type_meta) + b"\x12"


def _open_usual(data: bytes) -> Envelope | None:
    """Open an envelope with upstream's layout without a scan; None for any other layout."""
    with suppress(IndexError):
        size, pos = read_size(data, len(MAGIC) + 1)
        middle = pos + size
        size, start = read_size(data, middle + 1)
        if data[len(MAGIC)] == _TYPE_META and data[middle] == _RAW and data[start + size :] == ENVELOPE_END:
            return Envelope(data[pos:middle], data[start : start + size])
    return None


def _open_any(data: bytes) -> Envelope:
    fields = _fields_of(data[len(MAGIC) :], _TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE)
    return Envelope(bytes_of(fields, _TYPE_META), bytes_of(fields, _RAW))


def _fields_of(data: bytes, *known: int) -> dict[int, Raw]:
    try:
        return fields_of(data, *known)
    except IndexError as error:
        raise ProtobufError(TRUNCATED) from error


_LENGTH = 4  # bytes
_TYPE, _OBJECT, _RAW_OBJECT = 0x0A, 0x12, 0x0A
MAX_FRAME = 16 * 1024 * 1024
"""Maximum size of an event in upstream's clients."""


@dataclass(frozen=True, slots=True)
class WatchFrame:
    """One event: type and enveloped object, an input of `codec.decode`."""

    type: str
    object: bytes


def watch_event(event_type: str, enveloped: bytes) -> bytes:
    """Return one framed event. `enveloped`: the output of `codec.encode`."""
    message = delimited(b"\x0a", event_type.encode()) + delimited(b"\x12", delimited(b"\x0a", enveloped))
    return len(message).to_bytes(_LENGTH, "big") + message


class FrameDecoder:
    """Splits a stream, fed in pieces of any size, into events.

    feed(piece)  → the completed events, in order
    close()      → ProtobufError if the stream ended inside an event
    """

    def __init__(self, *, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._buffer = bytearray()  # starts at a frame boundary

    def feed(self, piece: bytes) -> list[WatchFrame]:
        self._buffer += piece
        frames, start = [], 0
        while (end := self._frame_end(start)) is not None:
            frames.append(read_event(bytes(self._buffer[start + _LENGTH : end])))
            start = end
        del self._buffer[:start]
        return frames

    def close(self) -> None:
        if self._buffer:
            raise ProtobufError(TRUNCATED)

    def _frame_end(self, start: int) -> int | None:
        """Return the end of the frame at `start`; None while the frame is incomplete."""
        body = start + _LENGTH
        if len(self._buffer) < body:
            return None
        size = int.from_bytes(self._buffer[start:body], "big")
        if size > self._limit:
            raise ProtobufError("object to decode was longer than maximum allowed size")
        return body + size if len(self._buffer) >= body + size else None


def read_event(message: bytes) -> WatchFrame:
    """Decode a WatchEvent message without its length."""
    try:
        fields = fields_of(message, _TYPE, _OBJECT)
        extension = fields_of(bytes_of(fields, _OBJECT), _RAW_OBJECT)
    except IndexError as error:
        raise ProtobufError(TRUNCATED) from error
    return WatchFrame(text_of(fields, _TYPE), bytes_of(extension, _RAW_OBJECT))
