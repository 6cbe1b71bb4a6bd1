"""application/vnd.kubernetes.protobuf: the format of client-go for built-in kinds.

The codec is imported on first use, not at the start of the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from pilothouse.apiserver.endpoints.serializers.interface import CachedPieces, ListFrame, ListWriter, View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.machinery.protobuf.codec import ListPieces
from pilothouse.machinery.errors import NotAcceptable

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_META = ("v1", "meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class ProtobufSerializer:
    media_type = MEDIA_TYPE
    stream_media_type = f"{MEDIA_TYPE};stream=watch"
    is_text = False
    only_views = False
    event_prefix = 4
    variants = 1

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.protobuf import codec

        return codec.encode(obj)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return protobuf_piece(stored, view)

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.protobuf.envelope import envelope

        return envelope(view.kind, piece)

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        from pilothouse.machinery.protobuf.envelope import watch_event

        return watch_event(event_type, whole)


def protobuf_piece(stored: StoredObject, view: View) -> bytes:
    """Return the bare message without the envelope."""
    from pilothouse.machinery.protobuf import codec

    return stored.encoded((MEDIA_TYPE, view.kind), lambda _: codec.encode_raw(view.object(stored), view.kind))


class ProtobufListWriter(CachedPieces):
    needs_sizes = True
    media_type = MEDIA_TYPE

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return protobuf_piece(stored, view)

    def made_piece(self, obj: Json) -> bytes:
        from pilothouse.machinery.protobuf import codec

        return codec.encode_raw(obj, codec.gvk_of(obj))

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        return _pieces(frame).head(sizes)

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        wrapped = chain.from_iterable(map(_pieces(frame).item, pieces))
        if len(pieces) == 1:
            yield from wrapped
        else:
            yield b"".join(wrapped)

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes:
        return _pieces(frame).tail()


def _pieces(frame: ListFrame) -> ListPieces:
    from pilothouse.machinery.protobuf import codec

    fields = frame.fields
    return codec.ListPieces(GroupVersion.parse(fields["apiVersion"]).kind(fields["kind"]), fields["metadata"])


_LISTS = ProtobufListWriter()


class UnstructuredProtobufSerializer(ProtobufSerializer):
    """For custom resources, which have no messages: encodes only their metadata, and Status."""

    only_views = True

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Raises NotAcceptable for an object: a watch may start before its first event shows that there is no view."""
        if obj.get("apiVersion") not in _META:
            raise not_marshalable("Unstructured")
        return super().encode(obj, pretty=pretty)


def not_marshalable(kind: str) -> NotAcceptable:
    return NotAcceptable(
        f"object *unstructured.{kind} does not implement the protobuf marshalling interface and cannot be encoded to "
        "a protobuf message"
    )
