"""The watch cache of one resource. It stands before the store and answers every read that it can answer rightly.

Guarantees, on one event loop and without locks:
- a read that names no revision sees every write that returned before it began, on any store;
- a list is the state at one revision, and a watch that starts there sees every later change, once and in order;
- a watcher that does not keep up is ended and never waited for;
- when the store is lost, watchers end, reads go to the store or are refused, and the cache fills itself again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.storage.cacher.bookmarks import BookmarkSchedule
from pilothouse.apiserver.storage.cacher.clock import CacheClock, LoopClock
from pilothouse.apiserver.storage.cacher.direct_reader import DirectReader
from pilothouse.apiserver.storage.cacher.dispatch import CacheWatchers
from pilothouse.apiserver.storage.cacher.errors import CacheNotReady, TooLargeRevision
from pilothouse.apiserver.storage.cacher.events import Predicate, WatchEvent, bookmark
from pilothouse.apiserver.storage.cacher.feed import CacheFeed
from pilothouse.apiserver.storage.cacher.freshness import Freshness
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.pages import CachedPage, ListSelection
from pilothouse.apiserver.storage.cacher.readiness import Readiness
from pilothouse.apiserver.storage.cacher.reflector import StoreReflector
from pilothouse.apiserver.storage.cacher.state import CacheState
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, WatchOptions, WatchStart
from pilothouse.apiserver.storage.cacher.window import ChangeWindow, WindowLimits
from pilothouse.apiserver.storage.errors import Unavailable, Undecodable
from pilothouse.apiserver.storage.interface import Revision, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.tracing.spans import CURRENT, Attributes, audited, spanned
from pilothouse.machinery.names import GroupResource

REVISION_PATIENCE = 3.0  # how long a read waits for a revision that it names
READY_PATIENCE = 1.0  # how long a request waits for the cache to be filled
WATCH_BUFFER = 1000


def _of_get(key: str, not_older_than: Revision | None) -> Attributes:
    return audited({"key": key, "resource-version": "" if not_older_than is None else str(not_older_than)})


class Cacher:
    """`prefix` holds all keys of the resource, either as prefix + name or as prefix + namespace + "/" + name.

    `indexed_fields` are those that lists select by, the most telling first.
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
        """Every change up to it is in the cache."""
        return self._freshness.revision

    @property
    def changes(self) -> int:
        """Goes up with every change of an object: as long as it is the same, so is what the cache holds."""
        return self._state.changes

    async def start(self) -> None:
        """Begins to fill the cache. Requests may come at once; they wait for a moment."""
        self._reflector.start()

    async def wait_ready(self) -> None:
        """Returns when the cache is filled. Raises CacheNotReady when it is stopped before."""
        await self._readiness.wait(patience=None)

    async def stop(self) -> None:
        """Ends all watches. Lists and watches are refused from now on."""
        await self._reflector.stop()
        self._feed.lost(Unavailable("the watch cache is stopped"))
        self._readiness.stop()
        self._state.indexes.stop()
        self._bookmarks.stop()
        self._metrics.release()

    async def expire(self, revision: Revision) -> None:
        """Forget the past as after a compaction: the watches that expire end with Compacted, once they have seen every
        change up to the revision, and none can start before it. Raises CacheNotReady, TooLargeRevision."""
        if self.ready:
            await self._require(revision)
            self._feed.expire(revision)

    @property
    def followers_behind(self) -> int:
        """How many readers of watches that do not expire have events to take, or are at work on some."""
        return self._watchers.followers_behind

    @property
    def objects(self) -> int:
        """The number of objects."""
        return len(self._state)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def get(self, key: str, *, not_older_than: Revision | None = None) -> StoredObject | None:
        """The object, or None. `not_older_than`: None for the newest, 0 for whatever the cache has, or a revision.
        Raises TooLargeRevision, Unavailable."""
        if CURRENT.get() is not None:  # a decorator would cost every get several times as much
            return await self._traced_get(key, not_older_than)
        revision = await self._store.current_revision() if not_older_than is None else not_older_than
        if self._freshness.revision >= revision and self._readiness.ready:
            return self._state.get(key)
        return await self._get_slowly(key, revision, consistent=not_older_than is None)

    @spanned("cacher.Get", lambda self, key, not_older_than: _of_get(key, not_older_than))
    async def _traced_get(self, key: str, not_older_than: Revision | None) -> StoredObject | None:
        revision = await self._store.current_revision() if not_older_than is None else not_older_than
        return await self._get_slowly(key, revision, consistent=not_older_than is None)

    def held(self, key: str) -> StoredObject | None:
        """What the cache has at this moment, however old it is."""
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
        """The objects under `prefix` (or the one with that key), at a revision not older than the given one, as in
        `get`, or exactly at `at`. Raises CacheNotReady, TooLargeRevision, Compacted, Unavailable."""
        selection = ListSelection(prefix, after, limit, matches)
        if at is not None:
            return await self._list_at(selection, at)
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
        """Changes under `prefix`, or to the one object with that key.

        Starts with the state when `send_initial_events` asks for it, or when it is None and `after` is 0 or None;
        otherwise with the changes after `after`. `deadline` is in the time of the clock. One that `expires` ends when
        the past is forgotten. Raises CacheNotReady, TooOld, TooLargeRevision, Unavailable.
        """
        scope = self._watchers.scope(prefix, predicate)
        if send_initial_events or (send_initial_events is None and not after):
            selection = ListSelection(prefix, matches=predicate)
            start = await self._start_with_state(selection, after, mark_end=bool(send_initial_events and bookmarks))
        else:
            start = await self._start_after(after)
        # Nothing may be awaited from here to `add`: a change in between would be missed.
        options = WatchOptions(prefix, scope, predicate, bookmarks, deadline, expires)
        watcher = CacheWatcher(options, start, limit=self._watch_buffer, forget=self._watchers.remove)
        self._watchers.add(watcher)
        if bookmarks:
            self._bookmarks.add(watcher)
        self._metrics.init_events.inc(len(start.objects) + len(start.changes))
        return watcher

    async def _get_slowly(self, key: str, revision: Revision, *, consistent: bool) -> StoredObject | None:
        if not self.ready:
            return await self._direct.get(key, not_older_than=None if consistent else revision)
        if not consistent:
            await self._require(revision)
        elif not await self._freshness.consistent(revision):
            return await self._direct.get(key, not_older_than=None)
        return self._state.get(key)

    async def _list_at(self, selection: ListSelection, revision: Revision) -> CachedPage:
        """The window says what changed since, so the past is the present with those changes undone.

        It may reach back further than the store does: a revision that is forgotten there is forgotten here, too, so
        that what a client is told depends on the age of its token and not on how busy its kind is.
        """
        await self._require(revision)
        await self._direct.require_kept(selection.prefix, revision)
        await self._state.prepare(selection)
        if revision < self._window.floor:
            return await self._direct.list(selection, at=revision)
        changes = self._window.after(revision)
        return self._counted(await self._state.page_before(changes, selection, revision), selection)

    async def _start_with_state(
        self, selection: ListSelection, not_older_than: Revision | None, *, mark_end: bool
    ) -> WatchStart:
        if not_older_than is not None:
            await self._require(not_older_than)
        elif not await self._is_current():
            page = await self._direct.list(ListSelection(selection.prefix))
            await self._readiness.wait(patience=READY_PATIENCE)
            if page.revision < self._window.floor:
                # The cache was filled again meanwhile; what happened since the page is not in the window.
                raise CacheNotReady
            changes = self._window.after(page.revision)
            return WatchStart(page.revision, page.objects, end=self._end(page.revision, mark_end), changes=changes)
        await self._state.prepare(selection)
        objects = self._state.selectable(selection)
        return WatchStart(self.revision, objects, end=self._end(self.revision, mark_end))

    async def _start_after(self, revision: Revision | None) -> WatchStart:
        """A revision that the cache has not reached is no reason to wait: the watch skips events up to it."""
        if revision is None:
            revision = await self._store.current_revision()
        await self._readiness.wait(patience=READY_PATIENCE)
        revision = revision or self.revision
        return WatchStart(revision, changes=self._window.after(revision))

    def _end(self, revision: Revision, wanted: bool) -> WatchEvent | None:
        return bookmark(self._codec, revision, ends_initial_events=True) if wanted else None

    async def _is_current(self) -> bool:
        """Whether the cache has come, in time, to the revision that the store has now."""
        revision = await self._store.current_revision()
        await self._readiness.wait(patience=READY_PATIENCE)
        return await self._freshness.consistent(revision)

    async def _can_be_current(self) -> bool:
        """As `_is_current`; False also where the cache cannot be filled because some object cannot be read: the store
        knows whether that is still so, and whether the list has it at all."""
        try:
            return await self._is_current()
        except Undecodable:
            return False

    async def _require(self, revision: Revision) -> None:
        """Returns when the cache is ready and has reached the revision. Raises CacheNotReady, TooLargeRevision."""
        await self._readiness.wait(patience=READY_PATIENCE)
        if not await self._freshness.reached(revision, patience=REVISION_PATIENCE):
            await self._readiness.wait(patience=READY_PATIENCE)  # it may have been lost, and filled again, meanwhile
            if self.revision < revision:
                raise TooLargeRevision(revision, self.revision)

    def _counted(self, page: CachedPage, selection: ListSelection) -> CachedPage:
        self._metrics.listed(fetched=self._state.count(selection.keys), returned=len(page.objects))
        return page

    def _of_spans(self) -> Attributes:
        return audited({"type": str(self._resource)})

    def _request_progress(self) -> None:
        self._reflector.request_progress()
