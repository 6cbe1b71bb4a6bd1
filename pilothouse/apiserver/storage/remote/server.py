"""The server end of the sockets: a store shared by workers."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Page, Revision, Store
from pilothouse.apiserver.storage.remote.channel import (
    FEED,
    Channel,
    Message,
    pack_entry,
    pack_error,
    pack_events,
    pack_page,
)
from pilothouse.machinery.failed_attempts import log_failed_attempt

log = logging.getLogger(__name__)

_PAGE_BYTES = 4 << 20
"""Maximum page size; longer pages are cut, and the client requests the rest."""


class StoreSession:
    """Serves one worker, from `open` until the worker is gone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._working: set[asyncio.Task[None]] = set()
        self._channel: Channel | None = None
        self._operations: dict[str, Callable[..., Awaitable[Any]]] = {
            "get": self._get,
            "create": self._create,
            "update": self._update,
            "delete": self._delete,
            "list": self._list,
            "replay": self._replay,
            "count": store.count,
            "compact": store.compact,
            "ping": store.ping,
        }

    async def open(self, sock: socket.socket) -> None:
        self._channel = await Channel.over(sock, received=self._received, lost=self._lost)
        self._begin(self._feed(self._channel))

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    def _received(self, message: Message) -> None:
        self._begin(self._answer(*message))

    def _lost(self) -> None:
        """Cancel requests that have not started; accepted writes complete."""
        for task in self._working:
            task.cancel()

    async def _answer(self, number: int, operation: str, *arguments: Any) -> None:
        try:
            answer: Message = (number, None, await self._operations[operation](*arguments))
        except StorageError as error:
            answer = (number, *pack_error(error))
        except Exception as error:
            log_failed_attempt(log, error, "%s failed", operation, final=True)
            answer = (number, *pack_error(Unavailable(f"{operation} failed: {error}", uncertain=True)))
        assert self._channel is not None
        if self._channel.is_open:
            self._channel.send(answer)

    async def _feed(self, channel: Channel) -> None:
        """Push changes. A worker that does not keep up gets old events from the store, like any slow watch."""
        begin = await self._store.current_revision()
        channel.send((FEED, begin, []))
        watch = self._store.watch("", after=begin)
        try:
            async for batch in watch:
                await channel.drained()
                channel.send((FEED, batch.revision, pack_events(batch.events)))
        except StorageError as error:
            log.warning("a worker's feed ends: %s", error)
            channel.close()
        finally:
            await watch.aclose()

    async def _get(self, key: str) -> Any:
        return pack_entry(await self._store.get(key))

    async def _create(self, key: str, value: bytes, ttl: int) -> tuple[Revision, Revision]:
        return _revisions(await self._store.create(key, value, ttl=ttl))

    async def _update(self, key: str, value: bytes, expected: Revision, ttl: int) -> tuple[Revision, Revision]:
        return _revisions(await self._store.update(key, value, expected=expected, ttl=ttl))

    async def _delete(self, key: str, expected: Revision) -> Any:
        return pack_entry(await self._store.delete(key, expected=expected))

    async def _list(self, prefix: str, at: Revision | None, after: str, limit: int) -> Message:
        return pack_page(_cut(await self._store.list(prefix, at=at, after=after, limit=limit)))

    async def _replay(self, prefix: str, after: Revision) -> Message:
        """Return the next batch after the revision; an empty batch without events."""
        watch = self._store.watch(prefix, after=after)
        try:
            await watch.request_progress()
            batch = await anext(watch)
        finally:
            await watch.aclose()
        return (batch.revision, pack_events(batch.events))


def _revisions(entry: Entry) -> tuple[Revision, Revision]:
    """Return the revisions only; the worker has the rest of the entry."""
    return entry.created, entry.modified


def _cut(page: Page) -> Page:
    size = 0
    for at, entry in enumerate(page.entries, start=1):
        size += len(entry.value)
        if size > _PAGE_BYTES and at < len(page.entries):
            return Page(page.entries[:at], page.revision, page.remaining + len(page.entries) - at)
    return page
