"""What a media type must be able to do.

A stored object's bytes are made once per media type and version (`piece`) and kept with it; an answer, a list and
a watch event only wrap such pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
        """What upstream's messages call an object of this resource."""
        return "unstructured.Unstructured" if self.typed_items else internal_name(self.kind)

    def object(self, stored: StoredObject) -> Json:
        """A fresh copy of the object in this version."""
        obj = stored.parse()
        return obj if self.convert is None else self.convert(obj)


class Serializer(Protocol):
    media_type: str
    stream_media_type: str
    """The content type of a watch in this media type; empty where there is none."""

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Any object that says its kind and apiVersion."""

    def piece(self, stored: StoredObject, view: View) -> bytes: ...

    def whole(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes: ...

    def list(self, view: View, metadata: Json, pieces: Sequence[bytes]) -> Iterator[bytes]:
        """The list in parts that are sent one after the other."""

    def event(self, event_type: str, whole: bytes) -> bytes:
        """One frame of a watch stream."""
