"""The contract of serializers.

The bytes of a stored object are made once per media type and version (`piece`) and cached with the object. Responses,
lists and watch events wrap these pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Protocol

import orjson

from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.scheme import internal_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json


@dataclass(frozen=True)
class View:
    """The representation of stored objects in one served version."""

    kind: GroupVersionKind
    list_kind: str
    convert: Callable[[Json], Json] | None = None
    """Converts from the stored form to this version; None if they are identical."""
    typed_items: bool = False
    """Whether list items carry kind and apiVersion, as custom resources do."""

    @cached_property
    def json_prefix(self) -> bytes:
        return b'{"kind":%s,"apiVersion":%s,' % (orjson.dumps(self.kind.kind), orjson.dumps(self.kind.api_version))

    @cached_property
    def item_prefix(self) -> bytes:
        return self.json_prefix if self.typed_items else b"{"

    @property
    def go_type(self) -> str:
        """The Go type of the resource in upstream's messages."""
        return "unstructured.Unstructured" if self.typed_items else internal_name(self.kind)

    def object(self, stored: StoredObject) -> Json:
        """Return a fresh copy of the object in this version."""
        obj = stored.parse()
        return obj if self.convert is None else self.convert(obj)


@dataclass(frozen=True, slots=True)
class ListFrame:
    """A list without its items."""

    fields: Json
    """The last field is the empty field of the items."""
    item_prefix: bytes = b""
    """The bytes that pieces of stored objects lack in JSON: a brace and, for typed items, kind and apiVersion."""
    null_when_empty: bool = False
    """Whether an empty list is null in upstream's responses."""

    @property
    def items(self) -> str:
        """The name of the items field."""
        return next(reversed(self.fields))

    @property
    def no_items(self) -> bytes:
        """The value of the items field of an empty list, identical in JSON and YAML."""
        return b"null" if self.null_when_empty else b"[]"


class ListWriter(Protocol):
    """Writes a list in parts: head, items in several calls, tail."""

    needs_sizes: bool
    """Whether the head contains the length of the list, so that all pieces must exist first."""

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        """Return the number of stored bytes to encode for the pieces of these objects; 0 if all are cached."""

    def piece(self, stored: StoredObject, view: View) -> bytes: ...

    def made_piece(self, obj: Json) -> bytes:
        """Return the piece of an item made for this response: a table row, metadata."""

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes: ...

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        """Yield the items in order. A single piece is large, and is not copied."""

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes: ...


class CachedPieces:
    """Base of list writers whose pieces are cached with the objects, by media type and kind."""

    media_type: ClassVar[str]

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        form = (self.media_type, view.kind)
        return sum(stored.size for stored in objects if not stored.has_encoded(form))


class Serializer(Protocol):
    media_type: str
    stream_media_type: str
    """The content type of a watch in this media type; "" if unsupported."""
    is_text: bool
    """Whether the media type is readable text. Only text formats have tables."""
    only_views: bool
    """Whether only views of objects (and Status) can be encoded, not the objects."""
    event_prefix: int
    """The number of length bytes before an event. Framed transports omit them."""
    variants: int
    """The number of cached encodings of an event. More than one if the key order is random, so that watchers see
    different orders."""

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Return the bytes of an object with kind and apiVersion."""

    def piece(self, stored: StoredObject, view: View) -> bytes: ...

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        """Return the response body of the object with this piece."""

    def lists(self, *, pretty: bool = False) -> ListWriter: ...

    def event(self, event_type: str, whole: bytes) -> bytes:
        """Return one frame of a watch stream."""
