"""application/vnd.kubernetes.protobuf: what client-go speaks for built-in kinds.

The codec is imported when it is first used, which is not while the server starts.
"""

from __future__ import annotations

from pilothouse.apiserver.endpoints.serializers.interface import ListWriter, View
from pilothouse.apiserver.endpoints.serializers.protobuf_lists import MEDIA_TYPE, ProtobufListWriter, protobuf_piece
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json

_LISTS = ProtobufListWriter()


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
        from pilothouse.machinery.protobuf.watch import watch_event

        return watch_event(event_type, whole)
