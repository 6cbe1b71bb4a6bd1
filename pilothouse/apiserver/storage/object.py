"""One stored object at one revision, and the forms of it that were asked for.

A store keeps an object as JSON without its resourceVersion, because that is the revision the write is given.
The wire form is the stored bytes with the revision spliced in behind the uid; nothing is parsed or dumped again:

    stored   {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"…","creationTimestamp":…},"data":…}
    body                                         "metadata":{"name":"a","uid":"…","resourceVersion":"7",…},"data":…}

The body has no opening brace and no type, since lists leave the type out: GET sends `type prefix + body`,
LIST joins bodies with `,{`. Bytes that another server wrote in another order are parsed and dumped once instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import TypeAlias

import orjson

from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.labels_in_bytes import labels_in
from pilothouse.machinery.compact_bytes import copy_compact
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import METADATA_ORDER, Json, labels_of, metadata
from pilothouse.machinery.schema.raw_json import RawFields, compact, dump_exactly, keep_raw

Fields: TypeAlias = dict[str, str]

_UID = b'"uid":"'
_EMPTY = b':""'

_STORED_METADATA = tuple(name for name in METADATA_ORDER if name not in ("resourceVersion", "selfLink"))


@dataclass(frozen=True, slots=True)
class ObjectCodec:
    """How the objects of one resource are stored: their type, and the fields that selectors may name.
    `empty` makes an object in which nothing is set, which has annotations at most in its metadata: the content of a
    bookmark.
    `on_read` changes what was stored into what is shown, where the two differ: defaults, fields that went."""

    kind: str
    api_version: str
    fields_of: Callable[[Json], Fields]
    empty: Callable[[], Json] = dict
    on_read: Callable[[Json], None] | None = None
    stored: Callable[[Json], Json] = lambda obj: obj
    """Leaves out of an object what the store does not keep, and the object itself as it is."""
    printed: Callable[[Json], Json] | None = None
    """Leaves out of a stored object what is not shown of it; None where everything is."""
    from_older: Callable[[Json], None] | None = None
    """Brings an object that was stored in an older version into this one."""
    raw: RawFields | None = None
    """The fields whose text is stored as it came, while the wire form is compact."""
    type_prefix: bytes = field(init=False)
    """The kind and version as JSON: the start of a stored object, and of its form on the wire."""

    def __post_init__(self) -> None:
        prefix = b'{"kind":%s,"apiVersion":%s,' % (orjson.dumps(self.kind), orjson.dumps(self.api_version))
        object.__setattr__(self, "type_prefix", prefix)

    def encode(self, obj: Json) -> bytes:
        """The bytes to store: type and metadata first, resourceVersion and selfLink left out. `obj` is not changed."""
        obj = self.stored(obj)
        own = obj["metadata"]
        meta = {key: own[key] for key in _STORED_METADATA if key in own}
        rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
        whole = {"kind": self.kind, "apiVersion": self.api_version, "metadata": meta, **rest}
        return copy_compact(orjson.dumps(whole) if self.raw is None else dump_exactly(whole))


class StoredObject:
    """An object as one revision left it. Immutable; `parse` gives a fresh copy that the caller may change.

    >>> from pilothouse.apiserver import StoredObject
    >>> def colour_of(stored: StoredObject) -> str:
    ...     return stored.parse()["spec"]["colour"]
    """

    __slots__ = (
        "_body",
        "_codec",
        "_encoded",
        "_fields",
        "_labels",
        "_value",
        "created",
        "key",
        "revision",
        "size",
        "stale",
    )

    def __init__(self, entry: Entry, codec: ObjectCodec) -> None:
        self.key = entry.key
        self.created = entry.created
        self.revision: Revision = entry.modified
        self.stale = entry.stale
        self.size = len(entry.value)
        """Bytes as it is stored: about as many as any form of it has."""
        self._value = entry.value
        self._codec = codec
        self._body: bytes | None = None
        self._labels: dict[str, str] | None = None
        self._fields: Fields | None = None
        self._encoded: dict[Hashable, bytes] | None = None

    def at(self, revision: Revision) -> StoredObject:
        """The same content under another revision: how a deleted object is shown."""
        return StoredObject(Entry(self.key, self._value, self.created, revision), self._codec)

    def parse(self) -> Json:
        """A fresh object, with its resourceVersion."""
        obj = self._shown()
        metadata(obj)["resourceVersion"] = str(self.revision)
        return obj

    @property
    def body(self) -> bytes:
        """The JSON wire form without `{"kind":…,"apiVersion":…,`."""
        if self._body is None:
            as_stored = self._splice() if self.is_shown_as_stored() else None
            body = as_stored or self._rebuild()
            self._body = body if self._codec.raw is None else compact(body)
        return self._body

    @property
    def has_body(self) -> bool:
        """Whether `body` is there at next to no cost."""
        return self._body is not None or self.is_spliced

    @property
    def wire(self) -> bytes:
        """The whole JSON wire form."""
        return self._codec.type_prefix + self.body

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = self._labels_in_bytes()
        if self._labels is None:
            self._index()
        assert self._labels is not None
        return self._labels

    @property
    def fields(self) -> Fields:
        if self._fields is None:
            self._index()
        assert self._fields is not None
        return self._fields

    def read_labels(self) -> dict[str, str]:
        """Return `labels`, which are kept for the next time only where it takes a parser to read them."""
        if self._labels is None and (found := self._labels_in_bytes()) is not None:
            return found
        return self.labels

    def read_fields(self) -> Fields:
        """Return `fields`, and keep nothing for the next time."""
        return self._codec.fields_of(self._shown()) if self._fields is None else self._fields

    def encoded(self, form: Hashable, make: Callable[[StoredObject], bytes]) -> bytes:
        """Another encoding of this object (a media type, a version, a table row), made once and kept."""
        forms = self._encoded
        if forms is None:
            forms = self._encoded = {}
        found = forms.get(form)
        if found is None:  # a thread may make it at the same time, and it will be the same
            found = forms[form] = make(self)
        return found

    def has_encoded(self, form: Hashable) -> bool:
        return self._encoded is not None and form in self._encoded

    @property
    def is_spliced(self) -> bool:
        """Whether the body costs no more than a copy, for this object and all others of its resource."""
        return self._codec.on_read is None and self._codec.raw is None and self._codec.printed is None

    def _shown(self) -> Json:
        obj: Json = orjson.loads(self._value)
        if self._codec.raw is not None:
            keep_raw(self._codec.raw, self._value, obj)
        if self._codec.from_older is not None and not self._value.startswith(self._codec.type_prefix):
            self._codec.from_older(obj)
        if self._codec.on_read is not None:
            self._codec.on_read(obj)
        return obj

    def is_shown_as_stored(self) -> bool:
        """Whether an object that is written as it is shown would leave the store as it is."""
        return self._codec.on_read is None or self._shown() == orjson.loads(self._value)

    def _labels_in_bytes(self) -> dict[str, str] | None:
        return labels_in(self._value, self._codec.type_prefix) if self._codec.on_read is None else None

    def _index(self) -> None:
        obj = self._shown()
        self._labels = labels_of(obj)
        self._fields = self._codec.fields_of(obj)

    def _splice(self) -> bytes | None:
        prefix = self._codec.type_prefix
        if not self._value.startswith(prefix + b'"metadata":{'):
            return None
        if self._codec.printed is not None and _EMPTY in self._value:
            return None
        # The first "uid" behind the start is the object's own: what may stand before it (name, generateName,
        # namespace) holds no quotes.
        start = self._value.find(_UID, len(prefix))
        if start < 0:
            return None
        end = self._value.index(b'"', start + len(_UID)) + 1
        return b'%s,"resourceVersion":"%d"%s' % (self._value[len(prefix) : end], self.revision, self._value[end:])

    def _rebuild(self) -> bytes:
        obj = self.parse()
        if self._codec.printed is not None:
            obj = self._codec.printed(obj)
        rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
        return orjson.dumps({"metadata": obj["metadata"], **rest})[1:]
