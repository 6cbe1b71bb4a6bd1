"""An answer of the author against what the mirror has: nothing to do, or what has to be written."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.builder.own_functions import merging
from pilothouse.builder.own_functions.answers import Answer, AnswerReader
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, uid_of


@dataclass(frozen=True, slots=True)
class _Known:
    """What the author last said about an object, and the revision of the mirror that says the same."""

    digest: int
    mentioned: frozenset[str]
    revision: Revision


@dataclass(frozen=True, slots=True)
class Change:
    key: str
    old: Entry | None
    value: bytes | None
    """None: the object is gone."""
    replaces: bool = False
    """It is another object of the same name, with another uid."""
    digest: int = 0
    mentioned: frozenset[str] = frozenset()


class Comparer:
    """Remembers a few words about each object, so that an answer that has not changed costs next to nothing.

    Objects may be as large as clients like: the methods that begin with an underscore run beside the loop for those.
    """

    carried: frozenset[str]  # the metadata that the author has been seen to keep, of any object
    _known: dict[str, _Known]  # by key; only of objects that are in the mirror

    def __init__(self, reader: AnswerReader) -> None:
        resource = reader.resource
        self.reader = reader
        self.carried = frozenset()
        self._codec = ObjectCodec(resource.names.kind, resource.kind.api_version, resource.fields_of)
        self._known = {}

    async def compare(self, key: str, answer: Answer | None, entry: Entry | None) -> Change | None:
        """The change that the mirror needs, if any."""
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
        """The mirror has at this entry what the author said."""
        self._known[change.key] = _Known(change.digest, change.mentioned, entry.modified)

    def forget(self, key: str) -> None:
        """The object is no longer in the mirror, or soon will not be."""
        self._known.pop(key, None)

    async def kept(self, answer: Answer, sent: bytes) -> bytes:
        """To be stored when the author answers a write: the answer, and what was sent of the metadata besides."""
        return await offload_by_size(len(answer.text) + len(sent), self._kept, answer, sent)

    async def concerns_author(self, value: bytes, mirrored: bytes) -> bool:
        """Whether a change of an object is one of those parts that the author keeps."""
        return await offload_by_size(len(value) + len(mirrored), self._concerns_author, value, mirrored)

    def _kept(self, answer: Answer, sent: bytes) -> bytes:
        obj = self.reader.parse(answer)
        self.reader.complete(obj)
        return self._codec.encode(merging.combined(obj, metadata(orjson.loads(sent))))

    def _concerns_author(self, value: bytes, mirrored: bytes) -> bool:
        return merging.changes_what_the_author_keeps(orjson.loads(value), orjson.loads(mirrored), self.carried)

    def _change(self, answer: Answer, entry: Entry | None, before: frozenset[str]) -> Change:
        obj = self.reader.parse(answer)
        mentioned = merging.mentioned(obj)
        self.reader.complete(obj)
        old: Json | None = None if entry is None else orjson.loads(entry.value)
        replaces = old is not None and "uid" in mentioned and uid_of(obj) != uid_of(old)
        if old is None or replaces:
            value = self._codec.encode(merging.combined(obj, merging.new_metadata()))
        else:
            assert entry is not None
            value = self._updated(obj, old, entry.value, before - mentioned)
        return Change(answer.key, entry, value, replaces, hash(answer.text), mentioned)

    def _updated(self, obj: Json, old: Json, stored: bytes, taken_back: frozenset[str]) -> bytes:
        """`stored` itself where nothing but the order of keys would change."""
        changed = merging.combined(obj, metadata(old), taken_back=taken_back)
        value = self._codec.encode(merging.with_next_generation(changed, old))
        return stored if merging.same(orjson.loads(value), old) else value
