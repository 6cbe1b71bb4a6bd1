"""application/cbor: offered where the gate CBORServingAndStorage is open.

As upstream, the order of an answer's keys varies, so that nobody comes to rely on it. The codec is imported when it is
first used, which is not while the server starts.
"""

from __future__ import annotations

from pilothouse.apiserver.endpoints.serializers.cbor_lists import (
    MEDIA_TYPE,
    CborListWriter,
    cbor_piece,
    kind_of,
    with_bytes_of,
)
from pilothouse.apiserver.endpoints.serializers.interface import ListWriter, View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json

_LISTS = CborListWriter()


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
        from pilothouse.machinery.cbor.wire import SELF_DESCRIBED

        return SELF_DESCRIBED + with_type(piece, view.kind)

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        from pilothouse.machinery.cbor.encoding import watch_event

        return watch_event(event_type, whole)
