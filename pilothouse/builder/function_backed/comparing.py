"""Comparison of an author's answer with the mirror: nothing to do, or a change to write."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry.metadata import new_uid
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.builder.function_backed.functions import Answer, AnswerReader
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, uid_of
from pilothouse.machinery.times import now


@dataclass(frozen=True, slots=True)
class _Known:
    """The author's last answer about an object, and the mirror revision that matches it."""

    digest: int
    mentioned: frozenset[str]
    revision: Revision


@dataclass(frozen=True, slots=True)
class Change:
    key: str
    old: Entry | None
    value: bytes | None
    """New value; None deletes the object."""
    replaces: bool = False
    """Whether the object is replaced by another object with the same name (other uid)."""
    digest: int = 0
    mentioned: frozenset[str] = frozenset()


class Comparer:
    """Compares answers with the mirror. A digest per object makes unchanged answers cheap.

    Private methods run offloaded for large objects.
    """

    carried: frozenset[str]  # metadata fields that the author has returned for any object
    _known: dict[str, _Known]  # by key, for objects in the mirror

    def __init__(self, reader: AnswerReader) -> None:
        resource = reader.resource
        self.reader = reader
        self.carried = frozenset()
        self._codec = ObjectCodec(resource.names.kind, resource.kind.api_version, resource.fields_of)
        self._known = {}

    async def compare(self, key: str, answer: Answer | None, entry: Entry | None) -> Change | None:
        """Return the change that the mirror needs; None for none."""
        if answer is None:
            self.forget(key)
            return None if entry is None else Change(key, entry, None)
        known, digest = self._known.get(key), hash(answer.text)
        if entry and known and known.revision == entry.modified and known.digest == digest:
            return None
        before = known.mentioned if known else frozenset()
        size = len(answer.text) + (len(entry.value) if entry else 0)
        change = await offload_by_size(size, self._change, answer, entry, before)
        self.carried |= change.mentioned
        if entry is not None and change.value == entry.value:
            self.written(change, entry)
            return None
        return change

    def written(self, change: Change, entry: Entry) -> None:
        """Note that the entry matches the author's answer."""
        self._known[change.key] = _Known(change.digest, change.mentioned, entry.modified)

    def forget(self, key: str) -> None:
        """Drop the state of an object that is deleted."""
        self._known.pop(key, None)

    async def stored_value(self, answer: Answer, sent: bytes) -> bytes:
        """Return the value to store after a write: the answer, and the sent metadata that the answer does not have."""
        return await offload_by_size(len(answer.text) + len(sent), self._stored_value, answer, sent)

    async def concerns_author(self, value: bytes, mirrored: bytes) -> bool:
        """Whether a change affects fields that the author stores."""
        return await offload_by_size(len(value) + len(mirrored), self._concerns_author, value, mirrored)

    def _stored_value(self, answer: Answer, sent: bytes) -> bytes:
        obj = self.reader.parse(answer)
        self.reader.complete(obj)
        return self._codec.encode(combined(obj, metadata(orjson.loads(sent))))

    def _concerns_author(self, value: bytes, mirrored: bytes) -> bool:
        return affects_author(orjson.loads(value), orjson.loads(mirrored), self.carried)

    def _change(self, answer: Answer, entry: Entry | None, before: frozenset[str]) -> Change:
        obj = self.reader.parse(answer)
        mentioned = metadata_fields(obj)
        self.reader.complete(obj)
        old: Json | None = None if entry is None else orjson.loads(entry.value)
        replaces = old is not None and "uid" in mentioned and uid_of(obj) != uid_of(old)
        if old is None or replaces:
            value = self._codec.encode(combined(obj, new_metadata()))
        else:
            assert entry is not None
            value = self._updated(obj, old, entry.value, before - mentioned)
        return Change(answer.key, entry, value, replaces, hash(answer.text), mentioned)

    def _updated(self, obj: Json, old: Json, stored: bytes, withdrawn: frozenset[str]) -> bytes:
        """Return the new value; `stored` itself if only the order of keys differs."""
        changed = combined(obj, metadata(old), withdrawn=withdrawn)
        value = self._codec.encode(with_next_generation(changed, old))
        return stored if same(orjson.loads(value), old) else value


_IDENTITY = frozenset({"name", "namespace", "resourceVersion"})
_WITHDRAWABLE = frozenset({"labels", "annotations", "ownerReferences", "finalizers"})
"""Metadata that is removed when the author stops returning it. Other metadata stays."""
_NOT_CONTENT = ("kind", "apiVersion", "metadata", "status")


def metadata_fields(answered: Json) -> frozenset[str]:
    """Return the metadata fields that the author stores for this object."""
    return frozenset(metadata(answered)) - _IDENTITY


def new_metadata() -> Json:
    """Return the metadata of an object that appeared in an answer."""
    return {"uid": new_uid(), "creationTimestamp": now(), "generation": 1}


def combined(answered: Json, kept: Json, *, withdrawn: frozenset[str] = frozenset()) -> Json:
    """Return the answer, completed with the metadata `kept` that it does not have.

    `withdrawn` are the fields that the author no longer returns. The generation never decreases.
    """
    own = {key: value for key, value in metadata(answered).items() if key != "resourceVersion"}
    gone = (withdrawn & _WITHDRAWABLE) | {"resourceVersion"}
    meta = {key: value for key, value in kept.items() if key not in own and key not in gone} | own
    if kept.get("generation") and meta["generation"] < kept["generation"]:
        meta["generation"] = kept["generation"]
    return {**answered, "metadata": meta}


def with_next_generation(obj: Json, mirrored: Json) -> Json:
    """Return the object with the next generation, if anything except metadata and status changed."""
    last = metadata(mirrored).get("generation")
    if not last or metadata(obj)["generation"] > last or same(_content(obj), _content(mirrored)):
        return obj
    return {**obj, "metadata": {**metadata(obj), "generation": last + 1}}


def affects_author(obj: Json, mirrored: Json, carried: frozenset[str]) -> bool:
    """Whether the author must be told of a change. `carried`: metadata fields of the author.

    Other metadata belongs to the mirror: finalizers, deletion marks, managed fields.
    """
    return not same(_kept_by_author(obj, carried), _kept_by_author(mirrored, carried))


def same(one: Json, other: Json) -> bool:
    """Compare as JSON: in Python, True equals 1."""
    return one == other and _canonical(one) == _canonical(other)


def _kept_by_author(obj: Json, carried: frozenset[str]) -> Json:
    return {**obj, "metadata": {key: value for key, value in metadata(obj).items() if key in carried}}


def _content(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}


def _canonical(obj: Json) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
