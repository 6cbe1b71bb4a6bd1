"""Lists in protobuf: messages behind their tags and lengths, in an envelope that says how long all of it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from pilothouse.apiserver.endpoints.serializers.interface import ListFrame, View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.machinery.protobuf.codec import ListPieces

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"


def protobuf_piece(stored: StoredObject, view: View) -> bytes:
    """The bare message, without the envelope."""
    from pilothouse.machinery.protobuf import codec

    return stored.encoded((MEDIA_TYPE, view.kind), lambda _: codec.encode_raw(view.object(stored), view.kind))


class ProtobufListWriter:
    needs_sizes = True

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        form = (MEDIA_TYPE, view.kind)
        return sum(stored.size for stored in objects if not stored.has_encoded(form))

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
