"""application/json, with stored bytes sent unchanged, and application/yaml, whose encodings are not cached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson

from pilothouse.apiserver.endpoints.serializers.interface import ListFrame, ListWriter, View
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json

MEDIA_TYPE = "application/json"


class JsonSerializer:
    media_type = MEDIA_TYPE
    stream_media_type = MEDIA_TYPE
    is_text = True
    only_views = False
    event_prefix = 0
    variants = 1

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Only compact output ends with a newline, as upstream."""
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


def json_piece(stored: StoredObject, view: View) -> bytes:
    """Return the bytes after kind and apiVersion, without the opening brace."""
    if view.convert is None:
        return stored.body
    return stored.encoded((MEDIA_TYPE, view.kind), lambda _: _body(view.object(stored)))


def _body(obj: Json) -> bytes:
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return orjson.dumps(rest)[1:]


class JsonListWriter:
    needs_sizes = False

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        if view.convert is not None:
            form = (MEDIA_TYPE, view.kind)
            return sum(stored.size for stored in objects if not stored.has_encoded(form))
        if objects[0].is_spliced:
            return 0
        return sum(stored.size for stored in objects if not stored.has_body)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return json_piece(stored, view)

    def made_piece(self, obj: Json) -> bytes:
        return orjson.dumps(obj)

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        return orjson.dumps(frame.fields)[: -len(b"[]}")]

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        between = b"," + frame.item_prefix
        if first or len(pieces) == 1:
            yield b"[" + frame.item_prefix if first else between
            yield pieces[0] if len(pieces) == 1 else between.join(pieces)
        else:
            yield between.join((b"", *pieces))

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes:
        return frame.no_items + b"}\n" if empty else b"]}\n"


class PrettyJsonListWriter(JsonListWriter):
    """Writes the same text as an indented encoding of the whole list. JSON strings contain no line breaks."""

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        return sum(stored.size for stored in objects)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return self.made_piece(orjson.loads(view.item_prefix + json_piece(stored, view)))

    def made_piece(self, obj: Json) -> bytes:
        return b"\n    " + orjson.dumps(obj, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n    ")

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        return orjson.dumps(frame.fields, option=orjson.OPT_INDENT_2)[: -len(b"[]\n}")]

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        yield b"[" if first else b","
        yield pieces[0] if len(pieces) == 1 else b",".join(pieces)

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes:
        return frame.no_items + b"\n}" if empty else b"\n  ]\n}"


_LISTS, _PRETTY_LISTS = JsonListWriter(), PrettyJsonListWriter()


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
_YAML_LISTS = YamlListWriter()


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
        return _YAML_LISTS

    def event(self, event_type: str, whole: bytes) -> bytes:
        raise NotImplementedError("YAML has no watch stream; negotiation never chooses it for one")
