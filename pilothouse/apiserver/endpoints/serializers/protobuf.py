"""application/vnd.kubernetes.protobuf: what client-go speaks for built-in kinds.

The codec is imported when it is first used, which is not while the server starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.apiserver.endpoints.serializers.interface import View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json


class ProtobufSerializer:
    media_type = "application/vnd.kubernetes.protobuf"
    stream_media_type = "application/vnd.kubernetes.protobuf;stream=watch"

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.protobuf import codec

        return codec.encode(obj)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        """The bare message, without the envelope."""
        from pilothouse.machinery.protobuf import codec

        return stored.encoded((self.media_type, view.kind), lambda _: codec.encode_raw(view.object(stored), view.kind))

    def whole(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        from pilothouse.machinery.protobuf.envelope import envelope

        return envelope(view.kind, piece)

    def list(self, view: View, metadata: Json, pieces: Sequence[bytes]) -> Iterator[bytes]:
        from pilothouse.machinery.protobuf import codec

        kind = view.kind.group_version.kind(view.list_kind)
        yield from codec.list_pieces(kind, metadata, pieces)

    def event(self, event_type: str, whole: bytes) -> bytes:
        from pilothouse.machinery.protobuf.watch import watch_event

        return watch_event(event_type, whole)
