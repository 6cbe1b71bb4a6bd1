"""A stored object at one revision, with cached encodings.

Objects are stored as JSON without resourceVersion, which equals the revision of the write. The wire form is the stored
bytes with the revision spliced in behind the uid, without parsing:

    stored   {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"…","creationTimestamp":…},"data":…}
    body                                         "metadata":{"name":"a","uid":"…","resourceVersion":"7",…},"data":…}

The body omits the opening brace and the type, as list items do: GET sends `type prefix + body`, LIST joins bodies with
`,{`. Bytes of another server in another order are parsed and re-encoded once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import TypeAlias

import orjson

from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import METADATA_ORDER, Json, copy_compact, labels_of, metadata
from pilothouse.machinery.schema.raw_json import RawFields, compact, dump_exactly, keep_raw

Fields: TypeAlias = dict[str, str]

_UID = b'"uid":"'
_EMPTY = b':""'

_STORED_METADATA = tuple(name for name in METADATA_ORDER if name not in ("resourceVersion", "selfLink"))


@dataclass(frozen=True, slots=True)
class ObjectCodec:
    """The storage format of a resource: type, and selectable fields.

    `empty` returns an object without values, the content of a bookmark. `on_read` converts the stored form to the
    served form, where they differ: defaults, removed fields.
    """

    kind: str
    api_version: str
    fields_of: Callable[[Json], Fields]
    empty: Callable[[], Json] = dict
    on_read: Callable[[Json], None] | None = None
    stored: Callable[[Json], Json] = lambda obj: obj
    """Return a copy without the fields that are not stored."""
    printed: Callable[[Json], Json] | None = None
    """Return a copy without the fields that are not served; None = all fields are served."""
    from_older: Callable[[Json], None] | None = None
    """Convert an object of an older version in place."""
    raw: RawFields | None = None
    """Fields stored verbatim, while the wire form is compact."""
    type_prefix: bytes = field(init=False)
    """Kind and version as JSON: the start of the stored form and the wire form."""

    def __post_init__(self) -> None:
        prefix = b'{"kind":%s,"apiVersion":%s,' % (orjson.dumps(self.kind), orjson.dumps(self.api_version))
        object.__setattr__(self, "type_prefix", prefix)

    def encode(self, obj: Json) -> bytes:
        """Return the bytes to store: type and metadata first, without resourceVersion and selfLink. `obj` is
        unchanged."""
        obj = self.stored(obj)
        own = obj["metadata"]
        meta = {key: own[key] for key in _STORED_METADATA if key in own}
        rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
        whole = {"kind": self.kind, "apiVersion": self.api_version, "metadata": meta, **rest}
        return copy_compact(orjson.dumps(whole) if self.raw is None else dump_exactly(whole))


class Encodings:
    """Other encodings of an immutable object, made once and kept with the object."""

    __slots__ = ("_encoded",)

    _encoded: dict[Hashable, bytes] | None

    def has_encoded(self, form: Hashable) -> bool:
        return self._encoded is not None and form in self._encoded

    def known_encoding(self, form: Hashable) -> bytes | None:
        """Return the cached encoding, if any."""
        return None if self._encoded is None else self._encoded.get(form)


class StoredObject(Encodings):
    """An object as one revision left it. Immutable; `parse` gives a fresh copy that the caller may change.

    >>> from pilothouse.apiserver import StoredObject
    >>> def colour_of(stored: StoredObject) -> str:
    ...     return stored.parse()["spec"]["colour"]
    """

    __slots__ = (
        "_body",
        "_codec",
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
        """Stored size in bytes, similar for all encodings."""
        self._value = entry.value
        self._codec = codec
        self._body: bytes | None = None
        self._labels: dict[str, str] | None = None
        self._fields: Fields | None = None
        self._encoded = None

    def at(self, revision: Revision) -> StoredObject:
        """Return the same content at another revision, for deleted objects."""
        return StoredObject(Entry(self.key, self._value, self.created, revision), self._codec)

    def parse(self) -> Json:
        """Return a new object with its resourceVersion."""
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
        """Whether `body` costs almost nothing."""
        return self._body is not None or self.is_spliced

    @property
    def wire(self) -> bytes:
        """The complete JSON wire form."""
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
        """Return `labels`; cached only if they required parsing."""
        if self._labels is None and (found := self._labels_in_bytes()) is not None:
            return found
        return self.labels

    def read_fields(self) -> Fields:
        """Return `fields` without caching."""
        return self._codec.fields_of(self._shown()) if self._fields is None else self._fields

    def encoded(self, form: Hashable, make: Callable[[StoredObject], bytes]) -> bytes:
        """Return another encoding (media type, version, table row), created once and cached."""
        forms = self._encoded
        if forms is None:
            forms = self._encoded = {}
        found = forms.get(form)
        if found is None:  # a concurrent thread would create the same value
            found = forms[form] = make(self)
        return found

    @property
    def is_spliced(self) -> bool:
        """Whether bodies of this resource cost no more than a copy."""
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
        """Whether writing the served form would leave the stored form unchanged."""
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
        # The first "uid" is the object's own: the preceding values (name, generateName, namespace) have no quotes.
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


_METADATA = b'"metadata":{'
_LABELS = b'"labels":'


def labels_in(stored: bytes, type_prefix: bytes) -> dict[str, str] | None:
    """Return the labels of an object that begins with `type_prefix`, without parsing the object; None if parsing is
    required.

    The metadata before the labels has scalar values only, so its first brace belongs to the labels:

        {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"…","labels":{"app":"web"},"annotations":{…
    """
    start = len(type_prefix) + len(_METADATA)
    if not stored.startswith(_METADATA, len(type_prefix)) or not stored.startswith(type_prefix):
        return None
    first = stored.find(b"{", start)
    # A brace within a string does not follow `":`, and a brace behind the metadata follows a closing one.
    if stored[first - len(_LABELS) : first] != _LABELS or stored.find(b"}", start, first) >= 0:
        return {} if _LABELS not in stored else None
    try:
        labels: dict[str, str] = orjson.loads(stored[first : stored.find(b"}", first) + 1])
    except orjson.JSONDecodeError:  # not the form that servers store
        return None
    return labels
