"""Reading a store to the end: all pages of a list, the next events of a watch."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Revision, Store, Watch

_PATIENCE = 20  # seconds; only a failing test waits that long


async def next_batch(watch: Watch) -> Batch:
    async with asyncio.timeout(_PATIENCE):
        return await anext(watch)


async def next_events(watch: Watch, count: int) -> list[Event]:
    """Reads batches until there are `count` events. Each batch must keep its word about how far it reaches."""
    events: list[Event] = []
    reached = 0
    while len(events) < count:
        batch = await next_batch(watch)
        assert all(reached < event.revision <= batch.revision for event in batch.events)
        assert batch.revision >= reached
        reached = batch.revision
        events.extend(batch.events)
    return events


async def events_until(store: Store, prefix: str, *, after: Revision, last: Revision) -> list[Event]:
    """Every event under the prefix behind `after`, up to `last`, which must be the revision of one."""
    watch = store.watch(prefix, after=after)
    events: list[Event] = []
    while not events or events[-1].revision < last:
        events += (await next_batch(watch)).events
    await watch.aclose()
    return events


async def all_pages(store: Store, prefix: str, *, at: Revision | None, limit: int) -> list[Entry]:
    """The whole list in pages. Each page must tell rightly how much follows, at the first page's revision."""
    page = await store.list(prefix, at=at, limit=limit)
    entries, remaining = list(page.entries), [page.remaining]
    while page.remaining:
        assert len(page.entries) == limit
        page = await store.list(prefix, at=page.revision, after=entries[-1].key, limit=limit)
        entries += page.entries
        remaining.append(page.remaining)
    assert remaining == [max(0, len(entries) - limit * (i + 1)) if limit else 0 for i in range(len(remaining))]
    return entries
