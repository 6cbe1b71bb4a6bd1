"""Reads from the store, for a cache that lags, is not filled, or does not reach back far enough."""

from __future__ import annotations

from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.selection import CachedPage, ListSelection, select
from pilothouse.apiserver.storage.errors import FutureRevision, TooLargeRevision
from pilothouse.apiserver.storage.interface import Page, Revision, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.tracing.spans import SpanAttributes, audited, spanned

_PAGE = 10_000
_NO_KEY_HAS = "\x7f"


def _of_list(selection: ListSelection) -> SpanAttributes:
    return audited({"key": selection.prefix, "limit": selection.limit, "continue": selection.after})


class DirectReader:
    def __init__(self, store: Store, codec: ObjectCodec, metrics: CacheMetrics) -> None:
        self._store = store
        self._codec = codec
        self._metrics = metrics

    async def get(self, key: str, *, not_older_than: Revision | None) -> StoredObject | None:
        if not_older_than:
            current = await self._store.current_revision()
            if current < not_older_than:
                raise TooLargeRevision(not_older_than, current)
        entry = await self._store.get(key)
        return None if entry is None else StoredObject(entry, self._codec)

    @spanned("List(recursive=true) etcd3", lambda self, selection, **_: _of_list(selection))
    async def list(self, selection: ListSelection, *, at: Revision | None = None) -> CachedPage:
        """Read pages until `limit` objects match. Raises Compacted or TooLargeRevision."""
        chosen: list[StoredObject] = []
        after, limit = selection.after, selection.limit
        fetched = evaluated = 0
        try:
            while True:
                page = await self._page(selection, after=after, at=at)
                fetched += len(page.entries)
                found = await self._select(page, selection, limit=limit - len(chosen) if limit > 0 else 0)
                evaluated += len(page.entries) - found.remaining
                chosen += found.objects
                full = limit > 0 and len(chosen) == limit
                if full or not page.remaining:
                    return CachedPage(chosen, page.revision, found.remaining + page.remaining if full else 0)
                after, at = page.entries[-1].key, page.revision
        finally:
            self._metrics.listed_from_storage(fetched=fetched, evaluated=evaluated, returned=len(chosen))

    async def require_kept(self, prefix: str, revision: Revision) -> None:
        """Check that the store still has the revision, with an empty read. Raises Compacted or Unavailable."""
        await self._store.list(f"{prefix}{_NO_KEY_HAS}", at=revision, limit=1)

    async def _page(self, selection: ListSelection, *, after: str, at: Revision | None) -> Page:
        single = not selection.prefix.endswith("/")
        everything = selection.matches is not None or selection.limit <= 0
        size = 1 if single else _PAGE if everything else selection.limit
        try:
            page = await self._store.list(selection.prefix, at=at, after=after, limit=size)
        except FutureRevision as error:
            raise TooLargeRevision(error.requested, error.current) from None
        if single:  # longer keys with this prefix sort behind and are not meant
            page = Page([entry for entry in page.entries if entry.key == selection.prefix], page.revision)
        return page

    async def _select(self, page: Page, selection: ListSelection, *, limit: int) -> CachedPage:
        objects = [StoredObject(entry, self._codec) for entry in page.entries]
        if selection.matches is None:
            return CachedPage(objects, page.revision)
        return await select(objects, matches=selection.matches, limit=limit, revision=page.revision)
