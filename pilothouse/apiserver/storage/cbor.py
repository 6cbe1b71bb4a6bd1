"""A store with CBOR values, presented as JSON.

Both formats are readable. A value in the format not written now is stale, so the next write of the object converts it,
even a no-op write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Entry, Revision, Store
from pilothouse.apiserver.storage.json_view import ShownAsJson
from pilothouse.machinery.cbor.wellformed import SELF_DESCRIBED
from pilothouse.machinery.objects import copy_compact


class CborStore(ShownAsJson):
    """Reads both formats, and writes the configured one."""

    def __init__(self, store: Store, *, writes_cbor: bool) -> None:
        super().__init__(store)
        self._writes_cbor = writes_cbor

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        return replace(await self._store.create(key, await self._stored(value), ttl=ttl), value=value)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        stored = await self._stored(value)
        return replace(await self._store.update(key, stored, expected=expected, ttl=ttl), value=value)

    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        to_decode = sum(len(entry.value) for entry in entries if _is_cbor(entry.value))
        if not to_decode and not self._writes_cbor:
            return entries
        return await offload_by_size(to_decode, self._shown, entries)

    def _shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [
            _in_json(entry) if _is_cbor(entry.value) is self._writes_cbor else replace(_in_json(entry), stale=True)
            for entry in entries
        ]

    async def _stored(self, value: bytes) -> bytes:
        return await offload_by_size(len(value), _as_cbor, value) if self._writes_cbor else value


def _is_cbor(value: bytes) -> bool:
    return value.startswith(SELF_DESCRIBED)


def _as_cbor(value: bytes) -> bytes:
    """Encode as CBOR, preserving the key order for a stable round trip."""
    from pilothouse.machinery.cbor.encoding import encode_object

    return encode_object(orjson.loads(value))


def _in_json(entry: Entry) -> Entry:
    from pilothouse.machinery.cbor.decoding import decode
    from pilothouse.machinery.cbor.wellformed import CborError

    if not _is_cbor(entry.value):
        return entry
    try:
        return replace(entry, value=copy_compact(orjson.dumps(decode(entry.value))))
    except CborError as error:
        raise Undecodable(f"unable to decode the value of {entry.key}: {error}") from error
