"""application/json: stored bytes are sent as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json

# About half a megabyte of ordinary objects: large enough to be cheap, small enough to be sent while others wait.
_ITEMS_PER_PART = 200


class JsonSerializer:
    media_type = "application/json"
    stream_media_type = "application/json"

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        return orjson.dumps(obj, option=(orjson.OPT_INDENT_2 if pretty else 0) | orjson.OPT_APPEND_NEWLINE)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        """Everything behind kind and apiVersion, without the opening brace."""
        if view.convert is None:
            return stored.body
        return stored.encoded((self.media_type, view.kind), lambda _: _body(view.object(stored)))

    def whole(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        text = b"".join((view.json_prefix, piece, b"\n"))
        return self.encode(orjson.loads(text), pretty=True) if pretty else text

    def list(self, view: View, metadata: Json, pieces: Sequence[bytes]) -> Iterator[bytes]:
        head = {"kind": view.list_kind, "apiVersion": view.kind.api_version, "metadata": metadata, "items": []}
        yield orjson.dumps(head)[:-2]
        between = b"," + view.item_prefix
        for start in range(0, len(pieces), _ITEMS_PER_PART):
            yield between if start else view.item_prefix
            yield between.join(pieces[start : start + _ITEMS_PER_PART])
        yield b"]}\n"

    def event(self, event_type: str, whole: bytes) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (event_type.encode(), whole.rstrip(b"\n"))


def _body(obj: Json) -> bytes:
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return orjson.dumps(rest)[1:]
