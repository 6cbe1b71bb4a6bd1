"""Followers and informers of a registry: callbacks for every change, and the current objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json, name_of, namespace_of

_RETRY = 1.0
_AT_ONCE = 256

_log = logging.getLogger(__name__)

Put: TypeAlias = Callable[[Json], None]
"""Callback for an object that is new or has changed."""
Drop: TypeAlias = Callable[[str, str], None]
"""Callback for the namespace and name of a removed object."""
Settled: TypeAlias = Callable[[], None]
"""Callback after the calls of a complete list or of one change: the state is consistent."""


class RegistryFollower:
    """Calls back for every object in the watch cache: first for all objects, then for each change.

    After an interruption of the cache the follower lists again, and also reports the objects removed meanwhile.
    """

    _known: set[str]  # keys of the current objects
    _watcher: CacheWatcher | None  # starts where the last list ended
    _telling: asyncio.Lock  # held while a list is delivered, so that no change overtakes the list

    def __init__(self, registry: RegistryStore, put: Put, drop: Drop, settled: Settled = lambda: None) -> None:
        self.registry = registry
        self._put = put
        self._drop = drop
        self._settled = settled
        self._known = set()
        self._watcher = None
        self._telling = asyncio.Lock()

    async def fill(self) -> None:
        """List the objects, and drop removed ones. Raises StorageError."""
        cacher, prefix = self.registry.cacher, self.registry.keys.prefix
        await cacher.wait_ready()
        page = await cacher.list(prefix, not_older_than=0)
        async with self._telling:
            self._watcher = await cacher.watch(prefix, after=page.revision, send_initial_events=False)
            for gone in self._known - {stored.key for stored in page.objects}:
                self._remove(gone)
            async for stored in yield_periodically(page.objects, every=_AT_ONCE):
                self._add(stored)
            self._settled()

    async def fill_in_the_end(self) -> None:
        while True:
            try:
                return await self.fill()
            except Exception as error:  # also errors of callbacks: the next list calls them again
                _log.warning("%s are not watched for a moment: %s", self.registry.resource.names.plural, error)
                await asyncio.sleep(_RETRY)

    async def follow(self) -> None:
        """Deliver changes until cancelled, starting where `fill` ended."""
        while True:
            try:
                assert self._watcher is not None, "filled before it is followed"
                try:
                    async for event in self._watcher:
                        self._apply(event)
                finally:
                    self._watcher.abandon()
            except StorageError:
                pass  # the cause does not matter: list again
            except Exception as error:
                log_failed_attempt(
                    _log, error, "a change of %s was not understood", self.registry.resource.names.plural
                )
            await self.fill_in_the_end()

    async def catch_up(self) -> None:
        """Wait until the follower has received all changes up to now. Even a limited list waits for the cache."""
        await self.registry.cacher.list(self.registry.keys.prefix, limit=1)
        async with self._telling:
            while self._watcher is not None and (events := self._watcher.drain()):
                for event in events:
                    self._apply(event)

    def _apply(self, event: WatchEvent) -> None:
        if event.type is EventType.DELETED:
            self._remove(event.object.key)
        else:
            self._add(event.object)
        self._settled()

    def _add(self, stored: StoredObject) -> None:
        self._known.add(stored.key)
        self._put(stored.parse())

    def _remove(self, key: str) -> None:
        self._known.discard(key)
        self._drop(*self.registry.keys.names(key))


async def start_following(followers: Sequence[RegistryFollower], context: HookContext, *, who: str) -> None:
    """Deliver all stored objects, then follow changes in the background. Raises StorageError."""
    await asyncio.gather(*(follower.fill() for follower in followers))
    for follower in followers:
        context.spawn(follower.follow(), name=f"{who} of {follower.registry.resource.names.plural}")


Changed: TypeAlias = Callable[[list[Json]], None]
"""Callback for objects that are new, changed or removed."""


class RegistryInformer:
    """Keeps the current objects of a registry.

    Guarantees: the informer has a change before its callbacks run; changes of one object arrive in order. Objects are
    shared between all readers: treat them as immutable.
    """

    _objects: dict[tuple[str, str], Json]  # by (namespace, name)
    _news: list[Json]  # changes that callbacks have not received yet

    def __init__(self, registry: RegistryStore) -> None:
        self._follower = RegistryFollower(registry, self._put, self._drop, self._settled)
        self._objects = {}
        self._news = []
        self._listeners: list[Changed] = []
        self.synced = asyncio.Event()

    def get(self, name: str, *, namespace: str = "") -> Json | None:
        return self._objects.get((namespace, name))

    def all(self) -> list[Json]:
        return list(self._objects.values())

    def listen(self, changed: Changed) -> None:
        self._listeners.append(changed)

    async def wait_synced(self) -> None:
        await self.synced.wait()

    async def run(self) -> None:
        """Follow the registry until cancelled. Start over when the watch ends, for example because the store is
        lost."""
        await self._follower.fill_in_the_end()
        self.synced.set()
        await self._follower.follow()

    def _put(self, obj: Json) -> None:
        self._objects[namespace_of(obj), name_of(obj)] = obj
        self._news.append(obj)

    def _drop(self, namespace: str, name: str) -> None:
        if (gone := self._objects.pop((namespace, name), None)) is not None:
            self._news.append(gone)

    def _settled(self) -> None:
        news, self._news = self._news, []
        self._notify(news)

    def _notify(self, objects: list[Json]) -> None:
        for changed in self._listeners:
            changed(objects)
