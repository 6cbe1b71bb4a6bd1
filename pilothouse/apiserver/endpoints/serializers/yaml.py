"""application/yaml: for people. Nothing is kept, since people ask seldom."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import ListWriter, View
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer
from pilothouse.apiserver.endpoints.serializers.yaml_lists import YamlListWriter
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json

_JSON = JsonSerializer()
_LISTS = YamlListWriter()


class YamlSerializer:
    media_type = "application/yaml"
    stream_media_type = ""

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        return emit_yaml(obj)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return _JSON.piece(stored, view)

    def whole(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        return emit_yaml(orjson.loads(_JSON.whole(piece, view)))

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        raise NotImplementedError("YAML has no watch stream; negotiation never chooses it for one")
