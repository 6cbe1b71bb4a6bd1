"""The store of a worker: writes and old reads go to the store process, the current revision comes from shared memory,
and one stream feeds all watches."""

from __future__ import annotations

import asyncio
import socket

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.interface import Entry, Page, Revision
from pilothouse.apiserver.storage.remote.feed import RemoteFeed
from pilothouse.apiserver.storage.remote.messages import unpack_entry, unpack_page
from pilothouse.apiserver.storage.remote.requests import StoreRequests
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.watching.feed import FeedWatch

_ENTRIES_AT_A_TIME = 1000


class RemoteStore:
    """The storage contract for one event loop. The end of the store process is final: `lost` is set."""

    def __init__(self, revisions: SharedRevisions) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._revisions = revisions
        self._requests = StoreRequests()
        self._feed = RemoteFeed(self._requests, revisions)
        self._requests.unasked = self._feed.receive
        self._requests.lost = self._gone
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, sock: socket.socket, revisions: SharedRevisions) -> RemoteStore:
        """Connect; takes ownership of the socket. Raises Unavailable."""
        store = cls(revisions)
        await store._requests.open(sock)
        await store._feed.begun.wait()
        store._requests.ensure_open()
        return store

    async def get(self, key: str) -> Entry | None:
        return unpack_entry(await self._requests.ask("get", key))

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        key.encode()  # an unencodable key must not break the shared connection
        created, modified = await self._requests.ask("create", key, value, ttl)
        return Entry(key, value, created, modified)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        created, modified = await self._requests.ask("update", key, value, expected, ttl)
        return Entry(key, value, created, modified)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return Entry(*await self._requests.ask("delete", key, expected))

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """List in parts, so that neither process is busy for long. The first part fixes the revision."""
        entries: list[Entry] = []
        while True:
            wanted = min(limit - len(entries), _ENTRIES_AT_A_TIME) if limit > 0 else _ENTRIES_AT_A_TIME
            page = unpack_page(await self._requests.ask("list", prefix, at, after, wanted))
            entries += page.entries
            if not page.remaining or len(entries) == limit:
                return Page(entries, page.revision, page.remaining)
            at, after = page.revision, page.entries[-1].key

    async def count(self, prefix: str) -> int:
        found: int = await self._requests.ask("count", prefix)
        return found

    def watch(self, prefix: str, *, after: Revision) -> FeedWatch:
        return FeedWatch(self._feed, prefix=prefix, after=after)

    async def current_revision(self) -> Revision:
        self._requests.ensure_open()
        return self._revisions.current

    async def compact(self, revision: Revision) -> None:
        await self._requests.ask("compact", revision)

    async def ping(self) -> None:
        await self._requests.ask("ping")

    async def close(self) -> None:
        """Finish started writes, end the watches, and disconnect. The store itself stays open."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut_down())
        await asyncio.shield(self._closing)

    async def _shut_down(self) -> None:
        await self._requests.close()
        self._feed.end(Unavailable("the store is closed"))

    def _gone(self) -> None:
        self._feed.end(Unavailable("the store's process is gone"))
        if self._closing is None:
            self.lost.set_result(None)
