"""Paged reads of lists: decoding a whole list in one response would hold the event loop."""

from __future__ import annotations

from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import EtcdClient, Message
from pilothouse.apiserver.storage.etcd.keys import EtcdKeyRange
from pilothouse.apiserver.storage.interface import Entry, Page, Revision

_PART = 1000


async def read_page(client: EtcdClient, keys: EtcdKeyRange, *, at: Revision, limit: int) -> Page:
    """Return the first `limit` entries of the range, or all if `limit` is not positive; `at` 0 = current revision.
    Raises CompactedRevision, RevisionToCome or Unavailable."""
    entries: list[Entry] = []
    while True:
        part = min(limit - len(entries), _PART) if limit > 0 else _PART
        response: Message = await client.range(messages.page(keys, at=at, limit=part))
        at = at or response.header.revision
        entries += map(messages.entry_of, response.kvs)
        remaining = response.count - len(response.kvs)
        if not remaining or len(entries) == limit:
            return Page(entries, at, remaining)
        keys = EtcdKeyRange(response.kvs[-1].key + b"\0", keys.end)
