"""The watch cache of one resource: serves reads in front of the store.

Guarantees, on one event loop and without locks:
- a read without a revision sees every write that returned before the read began, on any store;
- a list is the state at one revision, and a watch from that revision delivers every later change once and in order;
- a watcher that does not keep up is closed and never waited for;
- when the store is lost, watchers end, reads go to the store or fail, and the cache refills.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

from pilothouse.apiserver.storage.cacher.bookmarks import BookmarkSchedule
from pilothouse.apiserver.storage.cacher.clock import CacheClock, LoopClock
from pilothouse.apiserver.storage.cacher.direct_reader import DirectReader
from pilothouse.apiserver.storage.cacher.events import Predicate, WatchEvent, bookmark
from pilothouse.apiserver.storage.cacher.feed import CacheFeed, CacheWatchers
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.readiness import Freshness, Readiness
from pilothouse.apiserver.storage.cacher.reflector import StoreReflector
from pilothouse.apiserver.storage.cacher.selection import CachedPage, ListSelection
from pilothouse.apiserver.storage.cacher.state import CacheState
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, WatchOptions, WatchStart
from pilothouse.apiserver.storage.cacher.window import ChangeWindow, WindowLimits
from pilothouse.apiserver.storage.errors import CacheNotReady, TooLargeRevision, Unavailable, Undecodable
from pilothouse.apiserver.storage.interface import Revision, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.tracing.spans import CURRENT, SpanAttributes, audited, spanned
from pilothouse.machinery.names import GroupResource

REVISION_PATIENCE = 3.0  # seconds that a read waits for its revision
READY_PATIENCE = 1.0  # seconds that a request waits for the cache to fill
WATCH_BUFFER = 1000


def _of_get(key: str, not_older_than: Revision | None) -> SpanAttributes:
    return audited({"key": key, "resource-version": "" if not_older_than is None else str(not_older_than)})


class Cacher:
    """`prefix` covers all keys of the resource: prefix + name, or prefix + namespace + "/" + name.

    `indexed_fields`: fields for list selectors, most selective first.
    """

    def __init__(
        self,
        store: Store,
        prefix: str,
        codec: ObjectCodec,
        *,
        resource: GroupResource,
        indexed_fields: Sequence[str] = (),
        clock: CacheClock | None = None,
        window: WindowLimits | None = None,
        watch_buffer: int = WATCH_BUFFER,
    ) -> None:
        clock = clock or LoopClock()
        self._store = store
        self._codec = codec
        self._resource = resource
        self._watch_buffer = watch_buffer
        self._metrics = CacheMetrics(resource)
        self._direct = DirectReader(store, codec, self._metrics)
        self._state = CacheState(codec, clock, indexed_fields)
        self._metrics.count_objects(self._state)
        self._window = ChangeWindow(window or WindowLimits(), self._metrics)
        self._watchers = CacheWatchers(prefix, self._metrics)
        self._readiness = Readiness(clock)
        self._freshness = Freshness(clock, request_progress=self._request_progress, metrics=self._metrics)
        self._bookmarks = BookmarkSchedule(
            clock, request_progress=self._request_progress, make=lambda: bookmark(codec, self.revision)
        )
        self._feed = CacheFeed(
            self._state, self._window, self._watchers, self._freshness, self._readiness, clock, self._metrics
        )
        self._reflector = StoreReflector(store, prefix, sink=self._feed, clock=clock)

    @property
    def ready(self) -> bool:
        return self._readiness.ready

    @property
    def revision(self) -> Revision:
        """Every change up to this revision is in the cache."""
        return self._freshness.revision

    @property
    def changes(self) -> int:
        """Counter of object changes; an equal counter means equal contents."""
        return self._state.changes

    async def start(self) -> None:
        """Start filling the cache. Early requests wait briefly."""
        self._reflector.start()

    async def wait_ready(self) -> None:
        """Wait until the cache is filled. Raises CacheNotReady if stopped before."""
        await self._readiness.wait(patience=None)

    async def stop(self) -> None:
        """End all watches, and refuse further lists and watches."""
        await self._reflector.stop()
        self._feed.lost(Unavailable("the watch cache is stopped"))
        self._readiness.stop()
        self._state.indexes.stop()
        self._bookmarks.stop()
        self._metrics.release()

    async def expire(self, revision: Revision) -> None:
        """Drop history up to the revision, as a compaction does. Expiring watches deliver changes up to the revision,
        then end with Compacted. Raises CacheNotReady or TooLargeRevision."""
        if self.ready:
            await self._require(revision)
            self._feed.expire(revision)

    @property
    def followers_behind(self) -> int:
        """Number of non-expiring watches with unread or unprocessed events."""
        return self._watchers.followers_behind

    @property
    def objects(self) -> int:
        """Number of objects."""
        return len(self._state)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def get(self, key: str, *, not_older_than: Revision | None = None) -> StoredObject | None:
        """Return the object, or None. `not_older_than`: None = consistent, 0 = any cached state, otherwise a minimum
        revision. Raises TooLargeRevision or Unavailable."""
        if CURRENT.get() is not None:  # a decorator would multiply the cost of a get
            return await self._traced_get(key, not_older_than)
        revision = await self._store.current_revision() if not_older_than is None else not_older_than
        if self._freshness.revision >= revision and self._readiness.ready:
            return self._state.get(key)
        return await self._get_consistent(key, revision, consistent=not_older_than is None)

    @spanned("cacher.Get", lambda self, key, not_older_than: _of_get(key, not_older_than))
    async def _traced_get(self, key: str, not_older_than: Revision | None) -> StoredObject | None:
        revision = await self._store.current_revision() if not_older_than is None else not_older_than
        return await self._get_consistent(key, revision, consistent=not_older_than is None)

    def held(self, key: str) -> StoredObject | None:
        """Return the cached object, however stale."""
        return self._state.get(key)

    @spanned("cacher.GetList", lambda self, *_, **__: self._of_spans())
    async def list(
        self,
        prefix: str,
        *,
        not_older_than: Revision | None = None,
        at: Revision | None = None,
        after: str = "",
        limit: int = 0,
        matches: Predicate | None = None,
    ) -> CachedPage:
        """Return the objects under `prefix` (or the object with that key) at a revision as in `get`, or exactly at
        `at`. Raises CacheNotReady, TooLargeRevision, Compacted or Unavailable."""
        selection = ListSelection(prefix, after, limit, matches)
        if at is not None:
            # The present with the later changes of the window undone. The window may reach further back than the store.
            # A revision compacted in the store is refused here as well, so the answer depends on the age of the token,
            # not on the write rate of the resource.
            await self._require(at)
            await self._direct.require_kept(selection.prefix, at)
            await self._state.prepare(selection)
            if at < self._window.floor:
                return await self._direct.list(selection, at=at)
            changes = self._window.after(at)
            return self._counted(await self._state.page_before(changes, selection, at), selection)
        if not_older_than is not None:
            await self._require(not_older_than)
        elif not await self._can_be_current():
            page = await self._direct.list(selection)
            self._metrics.consistent_list(fallback=True)
            return page
        else:
            self._metrics.consistent_list(fallback=False)
        await self._state.prepare(selection)
        return self._counted(await self._state.page(selection, self.revision), selection)

    @spanned("cacher.Watch", lambda self, *_, **__: self._of_spans())
    async def watch(
        self,
        prefix: str,
        *,
        after: Revision | None = None,
        predicate: Predicate | None = None,
        send_initial_events: bool | None = None,
        bookmarks: bool = False,
        deadline: float | None = None,
        expires: bool = False,
    ) -> CacheWatcher:
        """Watch changes under `prefix`, or of the object with that key.

        The watch starts with the state if `send_initial_events` is true, or if it is None and `after` is 0 or None;
        otherwise with the changes after `after`. `deadline`: clock time. `expires`: end the watch when history is
        dropped. Raises CacheNotReady, TooOld, TooLargeRevision or Unavailable.
        """
        scope = self._watchers.scope(prefix, predicate)
        if send_initial_events or (send_initial_events is None and not after):
            selection = ListSelection(prefix, matches=predicate)
            start = await self._start_with_state(selection, after, mark_end=bool(send_initial_events and bookmarks))
        else:
            # A revision ahead of the cache needs no wait: the watch skips events up to it.
            revision = await self._store.current_revision() if after is None else after
            await self._readiness.wait(patience=READY_PATIENCE)
            revision = revision or self.revision
            start = WatchStart(revision, changes=self._window.after(revision))
        # No await from here to `add`: a change in between would be missed.
        options = WatchOptions(prefix, scope, predicate, bookmarks, deadline, expires)
        watcher = CacheWatcher(
            options, start, limit=self._watch_buffer, forget=self._watchers.remove, pushes=self._watchers.pushes
        )
        self._watchers.add(watcher)
        if bookmarks:
            self._bookmarks.add(watcher)
        self._metrics.init_events.inc(len(start.objects) + len(start.changes))
        return watcher

    async def _get_consistent(self, key: str, revision: Revision, *, consistent: bool) -> StoredObject | None:
        if not self.ready:
            return await self._direct.get(key, not_older_than=None if consistent else revision)
        if not consistent:
            await self._require(revision)
        elif not await self._freshness.consistent(revision):
            return await self._direct.get(key, not_older_than=None)
        return self._state.get(key)

    async def _start_with_state(
        self, selection: ListSelection, not_older_than: Revision | None, *, mark_end: bool
    ) -> WatchStart:
        if not_older_than is not None:
            await self._require(not_older_than)
        elif not await self._is_current():
            page = await self._direct.list(ListSelection(selection.prefix))
            await self._readiness.wait(patience=READY_PATIENCE)
            if page.revision < self._window.floor:
                # The cache was refilled meanwhile; changes since the page are not in the window.
                raise CacheNotReady
            changes = self._window.after(page.revision)
            return WatchStart(page.revision, page.objects, end=self._end(page.revision, mark_end), changes=changes)
        await self._state.prepare(selection)
        objects = self._state.selectable(selection)
        return WatchStart(self.revision, objects, end=self._end(self.revision, mark_end))

    def _end(self, revision: Revision, wanted: bool) -> WatchEvent | None:
        return bookmark(self._codec, revision, ends_initial_events=True) if wanted else None

    async def _is_current(self) -> bool:
        """Return whether the cache reaches the store's current revision in time."""
        revision = await self._store.current_revision()
        await self._readiness.wait(patience=READY_PATIENCE)
        return await self._freshness.consistent(revision)

    async def _can_be_current(self) -> bool:
        """Like `_is_current`, but False if an undecodable object prevents filling: the store knows the current
        state."""
        try:
            return await self._is_current()
        except Undecodable:
            return False

    async def _require(self, revision: Revision) -> None:
        """Wait until the cache is ready at the revision. Raises CacheNotReady or TooLargeRevision."""
        await self._readiness.wait(patience=READY_PATIENCE)
        if not await self._freshness.reached(revision, patience=REVISION_PATIENCE):
            await self._readiness.wait(patience=READY_PATIENCE)  # the cache may have been lost and refilled
            if self.revision < revision:
                raise TooLargeRevision(revision, self.revision)

    def _counted(self, page: CachedPage, selection: ListSelection) -> CachedPage:
        self._metrics.listed(fetched=self._state.count(selection.keys), returned=len(page.objects))
        return page

    def _of_spans(self) -> SpanAttributes:
        return audited({"type": str(self._resource)})

    def _request_progress(self) -> None:
        self._reflector.request_progress()


_OF_STORES: WeakKeyDictionary[Store, WeakSet[Cacher]] = WeakKeyDictionary()


def cachers_of(store: Store) -> WeakSet[Cacher]:
    """Return the watch caches of the store in this process. Stores and caches are held by weak references."""
    return _OF_STORES.setdefault(store, WeakSet())
