"""Old events, for a watch that starts before what is kept in memory, or has fallen behind it."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.storage.etcd.stream import ServerWatch
from pilothouse.apiserver.storage.interface import Batch, Event
from pilothouse.apiserver.storage.watching.window import Window, weight

# What one replay brings at most, give or take one answer of etcd.
_EVENTS = 4096
_BYTES = 16 * 1024 * 1024

_ASK_EVERY = 0.1


async def replay(watch: ServerWatch, window: Window) -> Batch:
    """The oldest events that the watch has, up to those in the window if they are not too many. The window is made
    to reach back to where the watch began, if it can. Raises Compacted, Unavailable."""
    start, events, size = watch.reached, list[Event](), 0
    asking = asyncio.create_task(_ask_for_progress(watch))
    try:
        await watch.open()
        while watch.reached < window.start and len(events) < _EVENTS and size < _BYTES:
            batch = await watch.read()
            events += batch.events
            size += sum(map(weight, batch.events))
    finally:
        asking.cancel()
        watch.close()
    if watch.reached >= window.start:
        window.reach_back(start, events)
    return Batch(watch.reached, tuple(events))


async def _ask_for_progress(watch: ServerWatch) -> None:
    """A watch of a few keys may have no more events to tell, and only says so when it is asked, if it keeps up."""
    while True:
        await asyncio.sleep(_ASK_EVERY)
        if watch.answers_progress:
            await watch.request_progress()
