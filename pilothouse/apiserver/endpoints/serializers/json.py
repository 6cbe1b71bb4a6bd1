"""application/json: stored bytes are sent as they are."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import ListWriter, View
from pilothouse.apiserver.endpoints.serializers.json_lists import (
    MEDIA_TYPE,
    JsonListWriter,
    PrettyJsonListWriter,
    json_piece,
)
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json

_LISTS, _PRETTY_LISTS = JsonListWriter(), PrettyJsonListWriter()


class JsonSerializer:
    media_type = MEDIA_TYPE
    stream_media_type = MEDIA_TYPE
    is_text = True
    only_views = False
    event_prefix = 0
    variants = 1

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Only what is not indented ends its line: so upstream has it."""
        return orjson.dumps(obj, option=orjson.OPT_INDENT_2 if pretty else orjson.OPT_APPEND_NEWLINE)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return json_piece(stored, view)

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        text = b"".join((view.json_prefix, piece, b"\n"))
        return self.encode(orjson.loads(text), pretty=True) if pretty else text

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _PRETTY_LISTS if pretty else _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (event_type.encode(), whole.rstrip(b"\n"))
