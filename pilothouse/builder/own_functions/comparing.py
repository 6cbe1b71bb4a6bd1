"""An answer of the author against what the mirror has: nothing to do, or what has to be written."""

from __future__ import annotations

import orjson

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
    """Remembers a few words about each object, so that an answer that has not changed costs next to nothing."""

    carried: set[str]  # the metadata that the author has been seen to keep, of any object
    _known: dict[str, _Known]  # by key; only of objects that are in the mirror

    def __init__(self, reader: AnswerReader) -> None:
        resource = reader.resource
        self.reader = reader
        self.carried = set()
        self._codec = ObjectCodec(resource.names.kind, resource.kind.api_version, resource.fields_of)
        self._known = {}

    def compare(self, key: str, answer: Answer | None, entry: Entry | None) -> list[Change]:
        """The one change that the mirror needs, or none. At least one of `answer` and `entry` is there."""
        if answer is None:
            self._known.pop(key, None)
            return [] if entry is None else [Change(key, entry, None)]
        known, digest = self._known.get(key), hash(answer.text)
        if entry and known and known.revision == entry.modified and known.digest == digest:
            return []
        change = self._change(answer, entry, known.mentioned if known else frozenset())
        if entry is not None and change.value == entry.value:
            self.written(change, entry)
            return []
        return [change]

    def written(self, change: Change, entry: Entry) -> None:
        """The mirror has at this entry what the author said."""
        self._known[change.key] = _Known(change.digest, change.mentioned, entry.modified)

    def kept(self, answer: Answer, sent: Json) -> bytes:
        """To be stored when the author answers a write: the answer, and what was sent of the metadata besides."""
        obj = self.reader.parse(answer)
        self.carried |= merging.mentioned(obj)
        self.reader.complete(obj)
        return self._codec.encode(merging.combined(obj, metadata(sent)))

    def _change(self, answer: Answer, entry: Entry | None, before: frozenset[str]) -> Change:
        obj = self.reader.parse(answer)
        mentioned = merging.mentioned(obj)
        self.carried |= mentioned
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
