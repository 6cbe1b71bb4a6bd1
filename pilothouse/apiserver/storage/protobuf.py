"""A store that kube-apiserver has written to, or may write to: it keeps built-in kinds as protobuf, we as JSON.

Both are read, by kube-apiserver as well. A value in protobuf is stale, so that the next write of its object, even one
that changes nothing, brings it into our form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.shown_as_json import ShownAsJson
from pilothouse.machinery.objects import Json

MAGIC = b"k8s\x00"
"""As in machinery/protobuf/envelope.py, which a server whose store has no protobuf never imports."""


class ProtobufStore(ShownAsJson):
    """Reads both forms and writes JSON. `complete` gets each object that was read from protobuf."""

    def __init__(self, store: Store, complete: Callable[[Json], None] = lambda obj: None) -> None:
        super().__init__(store)
        self._complete = complete

    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        to_decode = sum(len(entry.value) for entry in entries if entry.value.startswith(MAGIC))
        return await offload_by_size(to_decode, self._in_json, entries) if to_decode else entries

    def _in_json(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [self._shown(entry) if entry.value.startswith(MAGIC) else entry for entry in entries]

    def _shown(self, entry: Entry) -> Entry:
        obj = from_protobuf(entry.key, entry.value)
        self._complete(obj)
        return replace(entry, value=orjson.dumps(obj), stale=True)


def from_protobuf(key: str, value: bytes) -> Json:
    """Raises Undecodable."""
    from pilothouse.machinery.protobuf.codec import decode
    from pilothouse.machinery.protobuf.wire import ProtobufError

    try:
        return decode(value)
    except ProtobufError as error:
        raise Undecodable(f"unable to decode the value of {key}: {error}") from error
