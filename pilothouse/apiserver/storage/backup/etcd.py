"""etcd as source and target of a backup.

etcd assigns consecutive revisions and cannot skip any. If etcd is behind the revisions that clients may have seen, no-
op writes raise its revision at about the rate of normal writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from aetcd import rpc

from pilothouse.apiserver.storage.backup.model import BackupError, NotEmpty, SavedEntry, Source
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import EtcdClient, Message
from pilothouse.apiserver.storage.etcd.failures import CompactedRevision, LeaseNotFound
from pilothouse.apiserver.storage.etcd.messages import EtcdKeyRange
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.interface import Revision

_PAGE: Final = 200
_AT_A_TIME: Final = 128
_LONGEST_WAY: Final = 5_000_000  # revisions; about twenty minutes
_SHORT, _HOUR = 60, 3600  # seconds
_PASSING: Final = "pilothouse-raises-the-revision/"
"""Key prefix of the no-op writes; outside of all watched prefixes."""


class EtcdSource:
    """All keys under the prefix at the revision of `open`, page by page."""

    def __init__(self, client: EtcdClient, prefix: str, revision: Revision) -> None:
        self._client = client
        self.prefix = prefix
        self.revision = revision
        self._ends: dict[int, float] = {}  # lease id → expiry

    @classmethod
    async def open(cls, client: EtcdClient, prefix: str) -> EtcdSource:
        """Open a source at the current revision. Raises Unavailable."""
        return cls(client, prefix, await _revision(client))

    async def entries(self) -> AsyncIterator[SavedEntry]:
        keys = EtcdKeyRange.under(f"{self.prefix}/")
        while True:
            response = await self._page(keys)
            for pair in response.kvs:
                ttl = await self._left(pair.lease) if pair.lease else 0
                yield SavedEntry(pair.key.decode(), pair.value, pair.create_revision, pair.mod_revision, ttl)
            if not response.more:
                return
            keys = EtcdKeyRange(response.kvs[-1].key + b"\0", keys.end)

    async def newest(self) -> Revision:
        return await _revision(self._client)

    async def _page(self, keys: EtcdKeyRange) -> Message:
        try:
            return await self._client.range(messages.page(keys, at=self.revision, limit=_PAGE))
        except CompactedRevision:
            raise Compacted(self.revision, self.revision + 1) from None

    async def _left(self, lease: int) -> int:
        """Return the remaining seconds of the lease; 1 for expired leases, so that their keys expire as well."""
        now = asyncio.get_running_loop().time()
        if lease not in self._ends:
            self._ends[lease] = now + await self._time_to_live(lease)
        return max(1, int(self._ends[lease] - now))

    async def _time_to_live(self, lease: int) -> int:
        try:
            response = await self._client.time_to_live(rpc.LeaseTimeToLiveRequest(ID=lease))
        except LeaseNotFound:
            return 1
        return int(response.TTL)


async def _revision(client: EtcdClient) -> Revision:
    response = await client.range(messages.current_revision())
    return int(response.header.revision)


class EtcdTarget:
    """An etcd without keys under the prefix."""

    def __init__(self, store: EtcdStore, prefix: str, *, told: Callable[[Revision, Revision], None]) -> None:
        """`told` is called with the current and the required revision before the revision is raised."""
        self._store = store
        self._prefix = prefix
        self._told = told

    @classmethod
    async def open(
        cls, store: EtcdStore, prefix: str, *, told: Callable[[Revision, Revision], None] = lambda now, wanted: None
    ) -> EtcdTarget:
        """Open an empty target. Raises NotEmpty or Unavailable."""
        if found := await store.count(f"{prefix}/"):
            raise NotEmpty(f"etcd, under {prefix}/,", found)
        return cls(store, prefix, told=told)

    async def fill(self, source: Source, *, at_least: Revision) -> Revision:
        now = await self._store.current_revision()
        if at_least - now > _LONGEST_WAY:
            raise BackupError(
                f"etcd is at revision {now} and has to come to {at_least}, which takes a write for each: "
                "take a snapshot of the empty etcd, and start it from "
                f"`etcdutl snapshot restore --bump-revision {at_least} --mark-compacted`, which takes none"
            )
        if now < at_least:
            self._told(now, at_least)
            await self._raise(at_least - now)
        try:
            async with _InTurns() as turns:
                async for entry in source.entries():
                    await turns.begin(self._create, entry)
        except BaseException:
            await asyncio.shield(self._empty())
            raise
        revision = await self._store.current_revision()
        await self._store.compact(revision)
        return revision

    async def _create(self, entry: SavedEntry) -> None:
        # Longer TTLs are rounded up to full hours: keys of equal TTL share a lease, and leases are expensive.
        ttl = entry.ttl if entry.ttl <= _SHORT else -(-entry.ttl // _HOUR) * _HOUR
        await self._store.create(entry.key, entry.value, ttl=ttl)

    async def _raise(self, by: Revision) -> None:
        """Write and delete keys; each operation takes one revision."""
        async with _InTurns() as turns:
            for number in range((by + 1) // 2):
                await turns.begin(self._pass_by, f"{_PASSING}{number}")

    async def _pass_by(self, key: str) -> None:
        entry = await self._store.create(key, b"")
        await self._store.delete(key, expected=entry.modified)

    async def _empty(self) -> None:
        """Delete the entries of a failed restore."""
        page = await self._store.list(f"{self._prefix}/")
        async with _InTurns() as turns:
            for entry in page.entries:
                await turns.begin(self._delete, entry.key, entry.modified)

    async def _delete(self, key: str, revision: Revision) -> None:
        await self._store.delete(key, expected=revision)


class _InTurns:
    """Runs a bounded number of concurrent calls. All started calls complete before the block ends; the first failure is
    re-raised."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_A_TIME)
        self._under_way: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> _InTurns:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if kind is None:
            self._raise_failure()

    async def begin(self, call: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
        """Start the call as soon as a slot is free."""
        await self._free.acquire()
        self._raise_failure()
        task = asyncio.create_task(call(*arguments))
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._free.release()
        self._failure = self._failure or (None if task.cancelled() else task.exception())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
