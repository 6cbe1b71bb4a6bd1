"""The frames of a watch, from the events of a watcher.

At most one part of the stream (`list_parts.PART`) is held for a slow client, however many events are ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from pilothouse.apiserver.endpoints.event_encoding import EventEncoder
from pilothouse.apiserver.endpoints.list_parts import slices
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.cacher.events import WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted, Undecodable
from pilothouse.apiserver.tallies import CounterTally, HistogramTally, Labels
from pilothouse.machinery.errors import Expired
from pilothouse.machinery.server_errors import InternalError

T = TypeVar("T")

_LABELS = ("group", "version", "resource")

WATCH_EVENTS = CounterTally(
    "apiserver_watch_events", "[ALPHA] Number of events sent in watch clients", _LABELS, registry=REGISTRY
)
WATCH_EVENT_SIZES = HistogramTally(
    "apiserver_watch_events_sizes",
    "[ALPHA] Watch event size distribution in bytes",
    _LABELS,
    bounds=[1024 * 2**power for power in range(8)],
    registry=REGISTRY,
)


async def watch_frames(
    watcher: CacheWatcher,
    encoder: EventEncoder,
    serializer: Serializer,
    join: Callable[[list[bytes]], T],
    *,
    timeout: float,
    labels: Labels,
) -> AsyncIterator[T]:
    """Yield the frames of all events until the watcher closes or the timeout expires.

    `join` combines the frames that are ready at the same time. An unreadable object or a compacted revision ends the
    watch with an ERROR event.
    """
    expiry = asyncio.get_running_loop().call_later(timeout, watcher.close)
    try:
        async for event in watcher:
            for events in slices([event, *watcher.drain()]):
                frames = await offload_by_size(sum(map(encoder.work, events)), _encode, encoder, events)
                for frame in frames:
                    WATCH_EVENTS.inc(labels)
                    WATCH_EVENT_SIZES.observe(labels, len(frame))
                yield join(frames)
            del event, events, frames, frame  # release the memory while waiting for the next event
    except Undecodable as error:
        yield join([serializer.event("ERROR", serializer.encode(InternalError.of(str(error)).status))])
    except Compacted:
        expired = Expired("The resourceVersion for the provided watch is too old.")
        yield join([serializer.event("ERROR", serializer.encode(expired.status))])
    finally:
        expiry.cancel()
        watcher.abandon()


def _encode(encode: EventEncoder, events: Sequence[WatchEvent]) -> list[bytes]:
    return [encode(event) for event in events]
