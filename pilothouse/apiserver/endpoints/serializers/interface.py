"""The contract of a media type's serializer.

A stored object's bytes are made once per media type and version (`piece`) and kept with it; an answer, a list and
a watch event only wrap such pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import orjson

from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.scheme import internal_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json


@dataclass(frozen=True)
class View:
    """How one served version shows the stored objects of a resource."""

    kind: GroupVersionKind
    list_kind: str
    convert: Callable[[Json], Json] | None = None
    """From the stored form to this version; None where they are the same."""
    typed_items: bool = False
    """Whether the items of a list carry kind and apiVersion, as custom resources do."""

    @cached_property
    def json_prefix(self) -> bytes:
        return b'{"kind":%s,"apiVersion":%s,' % (orjson.dumps(self.kind.kind), orjson.dumps(self.kind.api_version))

    @cached_property
    def item_prefix(self) -> bytes:
        return self.json_prefix if self.typed_items else b"{"

    @property
    def go_type(self) -> str:
        """The Go type by which upstream's messages name an object of this resource."""
        return "unstructured.Unstructured" if self.typed_items else internal_name(self.kind)

    def object(self, stored: StoredObject) -> Json:
        """A fresh copy of the object in this version."""
        obj = stored.parse()
        return obj if self.convert is None else self.convert(obj)


@dataclass(frozen=True, slots=True)
class ListFrame:
    """All of a list but its items."""

    fields: Json
    """Ends with the field for the items, which is empty."""
    item_prefix: bytes = b""
    """The bytes that pieces of stored objects lack in JSON: a brace, and where items are typed, their type."""
    null_when_empty: bool = False
    """Whether upstream never makes the list unless it has an item."""

    @property
    def items(self) -> str:
        """The name of the field for the items."""
        return next(reversed(self.fields))

    @property
    def no_items(self) -> bytes:
        """The value of that field when there are none, which is the same in JSON and in YAML."""
        return b"null" if self.null_when_empty else b"[]"


class ListWriter(Protocol):
    """Writes a list in parts: its head, its items a few at a time, its tail."""

    needs_sizes: bool
    """Whether the head says how long the list is, so that all pieces must be there before it is written."""

    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        """How many stored bytes have to be encoded before the pieces of these objects are there; 0 for copies."""

    def piece(self, stored: StoredObject, view: View) -> bytes: ...

    def made_piece(self, obj: Json) -> bytes:
        """The piece of an item that was made for this answer: a row of a table, an object's metadata."""

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes: ...

    def items(self, frame: ListFrame, pieces: Sequence[bytes], *, first: bool) -> Iterator[bytes]:
        """The items as they follow each other. A piece that stands alone is large, and not copied."""

    def tail(self, frame: ListFrame, *, empty: bool) -> bytes: ...


class Serializer(Protocol):
    media_type: str
    stream_media_type: str
    """The content type of a watch in this media type; empty where there is none."""
    is_text: bool
    """Whether people can read it. Only then are there tables in it."""
    only_views: bool
    """Whether it can write the views of objects (and Status), but not the objects themselves."""
    event_prefix: int
    """How many bytes before an event say how long it is. Where something else says so, they are left out."""
    variants: int
    """How many encodings of an event are kept. Where keys have no order it is more than one, and watchers see that."""

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Return the bytes of an object that says its kind and apiVersion."""

    def piece(self, stored: StoredObject, view: View) -> bytes: ...

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        """Return the object of which this is the piece, as an answer has it."""

    def lists(self, *, pretty: bool = False) -> ListWriter: ...

    def event(self, event_type: str, whole: bytes) -> bytes:
        """One frame of a watch stream."""
