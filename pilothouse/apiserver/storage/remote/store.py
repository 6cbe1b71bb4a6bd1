"""The store of a worker: writes and old reads go to the store process, the current revision comes from shared memory,
and one stream feeds all watches.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

from pilothouse.apiserver.storage.delegating import ClosingStore
from pilothouse.apiserver.storage.errors import Compacted, StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision
from pilothouse.apiserver.storage.remote.channel import (
    FEED,
    Channel,
    Message,
    unpack_entry,
    unpack_error,
    unpack_events,
    unpack_page,
)
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.watch_feed import FeedWatch, WatchFeed
from pilothouse.apiserver.storage.watching import StoreWatcher


class StoreRequests:
    """`unasked` gets pushed revisions and changes; `lost` is called when the store process is gone or the channel
    closed."""

    _waiting: dict[int, asyncio.Future[Any]]

    def __init__(self) -> None:
        self.unasked: Callable[[Revision, list[Message]], None] = lambda revision, events: None
        self.lost: Callable[[], None] = lambda: None
        self._waiting = {}
        self._numbers = count(FEED + 1)
        self._channel: Channel | None = None
        self._closed = False

    async def open(self, sock: socket.socket) -> None:
        self._channel = await Channel.over(sock, received=self._received, lost=self._connection_lost)

    def ensure_open(self) -> None:
        """Raise Unavailable if closed or lost."""
        if self._closed:
            raise Unavailable("the store is closed")
        if self._channel is None or not self._channel.is_open:
            raise Unavailable("the store's process is gone")

    async def ask(self, operation: str, *arguments: Any) -> Any:
        """Return the answer. Raises StorageError; requests to a process that ends meanwhile are uncertain."""
        self.ensure_open()
        assert self._channel is not None
        await self._channel.drained()
        self.ensure_open()
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._channel.send((number, operation, *arguments))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Refuse new requests, wait for pending answers, and close."""
        self._closed = True
        if self._waiting:
            await asyncio.wait(list(self._waiting.values()))
        if self._channel is not None:
            self._channel.close()

    def _received(self, message: Message) -> None:
        number, error, content = message
        if number == FEED:
            self.unasked(error, content)
        elif (waiting := self._waiting.get(number)) is None or waiting.done():
            return  # the caller has given up
        elif error is None:
            waiting.set_result(content)
        else:
            waiting.set_exception(unpack_error(error, content))

    def _connection_lost(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Unavailable("the store's process is gone", uncertain=True))
        self.lost()


class RemoteFeed(WatchFeed):
    """Starts at the first revision from the store process, then sets `begun`."""

    def __init__(self, requests: StoreRequests, revisions: SharedRevisions) -> None:
        super().__init__()
        self._requests = requests
        self._revisions = revisions
        self.begun = asyncio.Event()

    @property
    def is_current(self) -> bool:
        return self.reached >= self._revisions.current

    def ensure_running(self) -> None:
        self._requests.ensure_open()

    def join(self, watcher: StoreWatcher, after: Revision) -> list[Event] | None:
        """Join the feed. Raises Compacted or Unavailable."""
        if after < self._revisions.compacted:
            raise Compacted(after, self._revisions.compacted)
        return super().join(watcher, after)

    async def current_revision(self) -> Revision:
        return self._revisions.current

    async def replay(self, prefix: str, after: Revision) -> Batch:
        revision, events = await self._requests.ask("replay", prefix, after)
        return Batch(revision, unpack_events(events))

    def receive(self, revision: Revision, packed: list[Message]) -> None:
        if self.begun.is_set():
            self._publish(Batch(revision, unpack_events(packed)))
        else:
            self._begin(revision)
            self.begun.set()

    def end(self, error: StorageError) -> None:
        super().end(error)
        self.begun.set()


_ENTRIES_AT_A_TIME = 1000


class RemoteStore(ClosingStore):
    """The storage contract for one event loop. The end of the store process is final: `lost` is set."""

    def __init__(self, revisions: SharedRevisions) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._revisions = revisions
        self._requests = StoreRequests()
        self._feed = RemoteFeed(self._requests, revisions)
        self._requests.unasked = self._feed.receive
        self._requests.lost = self._gone

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

    async def _shut_down(self) -> None:
        """Finish started writes, end the watches, and disconnect. The store itself stays open."""
        await self._requests.close()
        self._feed.end(Unavailable("the store is closed"))

    def _gone(self) -> None:
        self._feed.end(Unavailable("the store's process is gone"))
        if self._closing is None:
            self.lost.set_result(None)
