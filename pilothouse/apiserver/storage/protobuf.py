"""A store shared with kube-apiserver, which writes built-in kinds as protobuf.

Both formats are readable, also by kube-apiserver. Protobuf values are stale, so the next write of the object converts
it to JSON, even a no-op write.
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
"""As in machinery/protobuf/envelope.py, which is not imported for stores without protobuf."""


class ProtobufStore(ShownAsJson):
    """Reads both formats, and writes JSON. `complete` is called with each object read from protobuf."""

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
    """Decode a value. Raises Undecodable."""
    from pilothouse.machinery.protobuf.codec import decode
    from pilothouse.machinery.protobuf.wire import ProtobufError

    try:
        return decode(value)
    except ProtobufError as error:
        raise Undecodable(f"unable to decode the value of {key}: {error}") from error
