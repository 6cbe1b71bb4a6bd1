"""application/cbor: available with the gate CBORServingAndStorage.

As upstream, the order of keys in responses varies, so that clients do not rely on it. The codec is imported on first
use, not at the start of the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import CachedPieces, ListFrame, ListWriter, View
from pilothouse.apiserver.endpoints.serializers.json import json_piece
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json

MEDIA_TYPE = "application/cbor"


class CborSerializer:
    media_type = MEDIA_TYPE
    stream_media_type = f"{MEDIA_TYPE}-seq"
    is_text = False
    only_views = False
    event_prefix = 0
    variants = 2

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.cbor.encoding import encode_object, rotated

        return encode_object(rotated(with_bytes_of(kind_of(obj), obj)))

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return cbor_piece(stored, view)

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.cbor.encoding import with_type
        from pilothouse.machinery.cbor.wellformed import SELF_DESCRIBED

        return SELF_DESCRIBED + with_type(piece, view.kind)

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        from pilothouse.machinery.cbor.encoding import watch_event

        return watch_event(event_type, whole)


def cbor_piece(stored: StoredObject, view: View) -> bytes:
    """Return the object as a map without kind and apiVersion."""
    return stored.encoded((MEDIA_TYPE, view.kind), lambda _: _encoded(view.kind, b"{" + json_piece(stored, view)))


def _encoded(kind: GroupVersionKind, text: bytes) -> bytes:
    from pilothouse.machinery.cbor.encoding import encode

    return encode(with_bytes_of(kind, orjson.loads(text)))


def with_bytes_of(kind: GroupVersionKind, obj: Json) -> Json:
    """Return the object with bytes in the byte fields of its type."""
    from pilothouse.machinery.schema import types
    from pilothouse.machinery.schema.byte_fields import with_bytes

    found = types.of(kind)
    fields = found.byte_fields if found is not None else None
    return obj if fields is None else with_bytes(fields, obj)


def kind_of(obj: Json) -> GroupVersionKind:
    return GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])


class CborListWriter(CachedPieces):
    needs_sizes = True
    media_type = MEDIA_TYPE

    def piece(self, stored: StoredObject, view: View) -> bytes:
        from pilothouse.machinery.cbor.encoding import with_type

        piece = cbor_piece(stored, view)
        return with_type(piece, view.kind) if view.typed_items else piece

    def made_piece(self, obj: Json) -> bytes:
        from pilothouse.machinery.cbor.encoding import encode

        return encode(obj)

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        from pilothouse.machinery.cbor.encoding import head_of_list

        return head_of_list(frame.fields, sum(1 for _ in sizes), null_when_empty=frame.null_when_empty)

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        yield pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes:
        return b""


_LISTS = CborListWriter()
