"""The distributed store: the storage contract on etcd. Every operation is one request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from aetcd import rpc

from pilothouse.apiserver.storage.delegating import ClosingStore
from pilothouse.apiserver.storage.errors import (
    Compacted,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    Unavailable,
)
from pilothouse.apiserver.storage.etcd import messages
from pilothouse.apiserver.storage.etcd.client import REQUEST_TIMEOUT, EtcdClient, EtcdEndpoint, EtcdTlsFiles, Message
from pilothouse.apiserver.storage.etcd.failures import CompactedRevision, LeaseNotFound, RevisionToCome, delays
from pilothouse.apiserver.storage.etcd.feed import EtcdFeed, RevisionReader
from pilothouse.apiserver.storage.etcd.leases import REUSE_SECONDS, LeaseManager
from pilothouse.apiserver.storage.etcd.maintenance import EtcdCompactor, EtcdMonitor
from pilothouse.apiserver.storage.etcd.messages import EtcdKeyRange
from pilothouse.apiserver.storage.etcd.stream import ServerWatch
from pilothouse.apiserver.storage.interface import Entry, Page, Revision, check_message_size
from pilothouse.apiserver.storage.watch_feed import FeedWatch

# kube-apiserver's --etcd-compaction-interval and etcd readiness timeout, in seconds.
COMPACTION_INTERVAL = 300.0
DIAL_TIMEOUT = 20.0

_NOTICE_AFTER = 2.0  # seconds without an answer before the start logs that it waits

# The revision of an empty etcd.
_EMPTY = 1

log = logging.getLogger(__name__)


class EtcdStore(ClosingStore):
    """Bound to one event loop. Keys must begin with `own`; other keys cannot be watched."""

    def __init__(self, client: EtcdClient, *, own: str, compaction_interval: float, lease_reuse: int) -> None:
        self._client = client
        self._revisions = RevisionReader(self._read_revision)
        self._feed = EtcdFeed(client, self._revisions, own=own)
        self._leases = LeaseManager(client, reuse=lease_reuse)
        self._monitor = EtcdMonitor(client)
        self._background = [asyncio.create_task(self._monitor.run())]
        if compaction_interval:
            self._background.append(asyncio.create_task(EtcdCompactor(client).run(compaction_interval)))

    @classmethod
    async def connect(
        cls,
        endpoints: Sequence[str],
        *,
        ca: str = "",
        cert: str = "",
        key: str = "",
        prefix: str = "",
        compaction_interval: float = COMPACTION_INTERVAL,
        lease_reuse: int = REUSE_SECONDS,
        request_timeout: float = REQUEST_TIMEOUT,
        dial_timeout: float = DIAL_TIMEOUT,
    ) -> EtcdStore:
        """Connect, and wait for etcd. `ca`, `cert` and `key` are file paths; an interval of 0 disables compaction.

        Raises Unavailable on timeout, StorageError or OSError.
        """
        tls = EtcdTlsFiles(ca, cert, key)
        client = EtcdClient([EtcdEndpoint(url, tls) for url in endpoints], timeout=request_timeout)
        try:
            await _wait_for_answer(client, endpoints, dial_timeout)
        except BaseException:
            await client.close()
            raise
        own = prefix.rstrip("/") + "/" if prefix else ""
        return cls(client, own=own, compaction_interval=compaction_interval, lease_reuse=lease_reuse)

    @property
    def client(self) -> EtcdClient:
        """The etcd client, for leases, which the store contract lacks."""
        return self._client

    async def get(self, key: str) -> Entry | None:
        response = await self._client.range(messages.get(key))
        return messages.entry_of(response.kvs[0]) if response.kvs else None

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        check_message_size(key, value)
        response = await self._write(lambda lease: messages.create(key, value, lease=lease), ttl)
        if not response.succeeded:
            raise KeyExists(key)
        return Entry(key, value, response.header.revision, response.header.revision)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        check_message_size(key, value)
        response = await self._write(lambda lease: messages.update(key, value, expected=expected, lease=lease), ttl)
        if not response.succeeded:
            raise _refusal(key, expected, response)
        pair = response.responses[1].response_range.kvs[0]
        return Entry(key, value, pair.create_revision, pair.mod_revision)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        response = await self._client.txn(messages.delete(key, expected=expected))
        if not response.succeeded:
            raise _refusal(key, expected, response)
        last = response.responses[0].response_delete_range.prev_kvs[0]
        return Entry(key, last.value, last.create_revision, response.header.revision)

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        keys = EtcdKeyRange.under(prefix, after=after)
        if keys.is_empty:
            return Page([], at if at is not None else await self.current_revision())
        try:
            return await read_page(self._client, keys, at=at or 0, limit=limit)
        except CompactedRevision:
            if at:
                raise await self._compacted(at) from None
        except RevisionToCome:
            raise FutureRevision(at or 0, await self.current_revision()) from None
        # Compaction overtook a list of the current state that took several requests.
        return await self.list(prefix, after=after, limit=limit)

    async def count(self, prefix: str) -> int:
        response = await self._client.range(messages.count(EtcdKeyRange.under(prefix)))
        return int(response.count)

    def watch(self, prefix: str, *, after: Revision) -> FeedWatch:
        if not prefix.startswith(self._feed.own):
            raise ValueError(f"{prefix} is outside of {self._feed.own}, whose changes this store follows")
        return FeedWatch(self._feed, prefix=prefix, after=max(after, _EMPTY))

    def current_revision(self) -> Coroutine[Any, Any, Revision]:
        return self._revisions.current()

    async def compact(self, revision: Revision) -> None:
        try:
            await self._client.compact(rpc.CompactionRequest(revision=revision))
        except CompactedRevision:
            return
        except RevisionToCome:
            raise FutureRevision(revision, await self.current_revision()) from None

    async def ping(self) -> None:
        await asyncio.gather(self._monitor.check(), self.current_revision())

    async def _shut_down(self) -> None:
        """End the watches, let running requests finish briefly, and disconnect."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._feed.close()
        await self._client.close()

    async def _write(self, request: Callable[[int], Message], ttl: int) -> Message:
        """Send a write with a lease. A lease may end early if etcd's clock jumps."""
        if not ttl:
            return await self._client.txn(request(0))
        try:
            return await self._client.txn(request(await self._leases.lease_for(ttl)))
        except LeaseNotFound:
            self._leases.forget()
        return await self._client.txn(request(await self._leases.lease_for(ttl)))

    async def _read_revision(self) -> Revision:
        response = await self._client.range(messages.current_revision())
        return int(response.header.revision)

    async def _compacted(self, revision: Revision) -> Compacted:
        """Return the error with the compacted revision, obtained by a watch: a refused read does not report it."""
        watch = ServerWatch(self._client, own=self._feed.own, after=revision)
        try:
            await watch.open()
            await watch.read()
        except Compacted as error:
            return error
        except Unavailable as error:
            log.debug("cannot determine the oldest revision of etcd: %s", error)
        finally:
            watch.close()
        return Compacted(revision, revision + 1)


async def _wait_for_answer(client: EtcdClient, endpoints: Sequence[str], patience: float) -> None:
    """Retry until etcd answers; log a line if that takes longer than two seconds. Raises Unavailable."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    text = "waiting for etcd at %s: no answer after %gs, giving up after %gs"
    notice = loop.call_later(_NOTICE_AFTER, log.warning, text, ", ".join(endpoints), _NOTICE_AFTER, patience)
    try:
        for delay in delays():
            try:
                await client.range(messages.current_revision())
                return
            except Unavailable:
                if loop.time() + delay > deadline:
                    raise
            await asyncio.sleep(delay)
    finally:
        notice.cancel()


def _refusal(key: str, expected: Revision, response: Message) -> KeyNotFound | RevisionConflict:
    found = response.responses[0].response_range.kvs
    if not found:
        return KeyNotFound(key)
    return RevisionConflict(f"{key} is at revision {found[0].mod_revision}, not {expected}")


_PART = 1000


async def read_page(client: EtcdClient, keys: EtcdKeyRange, *, at: Revision, limit: int) -> Page:
    """Return the first `limit` entries of the range, or all if `limit` is not positive; `at` 0 = current revision.

    The entries are read in parts, because decoding a whole list in one response would hold the event loop. Raises
    CompactedRevision, RevisionToCome or Unavailable.
    """
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
