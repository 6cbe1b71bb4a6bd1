"""application/yaml: objects and lists for people. Encodings are not cached, because requests are rare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import ListFrame, ListWriter, View
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer, json_piece
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json


class YamlListWriter:
    """Writes the keys that sort before the items, each item, and the keys that sort after them.

    Items are not indented under their key, so an item looks the same in any list.
    """

    needs_sizes = False

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        return sum(stored.size for stored in objects)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return self.made_piece(orjson.loads(view.item_prefix + json_piece(stored, view)))

    def made_piece(self, obj: Json) -> bytes:
        return emit_yaml([obj])

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        before = {key: value for key, value in frame.fields.items() if key < frame.items}
        return emit_yaml(before) + b"%b:" % frame.items.encode()

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        if first:
            yield b"\n"
        yield pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes:
        after = {key: value for key, value in frame.fields.items() if key > frame.items}
        return (b" %b\n" % frame.no_items if empty else b"") + (emit_yaml(after) if after else b"")


_JSON = JsonSerializer()
_LISTS = YamlListWriter()


class YamlSerializer:
    media_type = "application/yaml"
    stream_media_type = ""
    is_text = True
    only_views = False
    event_prefix = 0
    variants = 1

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        return emit_yaml(obj)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return _JSON.piece(stored, view)

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        return emit_yaml(orjson.loads(_JSON.wrap(piece, view)))

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        raise NotImplementedError("YAML has no watch stream; negotiation never chooses it for one")
