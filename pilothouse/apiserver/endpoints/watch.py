"""WATCH: a stream of events, one frame each, until the client goes, the time is up or the server stops.

It is the body of an answer, or messages on a WebSocket.
However many events are ready, no more than a part of the stream is held for a client that does not read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from pilothouse.apiserver.endpoints.event_encoding import EventEncoder, event_encoder
from pilothouse.apiserver.endpoints.list_parts import slices
from pilothouse.apiserver.endpoints.negotiation import Output, negotiate_stream
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry.interface import Watcher
from pilothouse.apiserver.registry.options import ListOptions
from pilothouse.apiserver.serving.websocket import accepted, is_websocket_request, refusal
from pilothouse.apiserver.serving.websocket_frames import BINARY, TEXT
from pilothouse.apiserver.storage.cacher.events import WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted, Undecodable
from pilothouse.apiserver.tallies import CounterTally, HistogramTally, Labels
from pilothouse.machinery.durations import seconds
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


class _Streaming(Protocol):
    def __call__(self, together: Callable[[list[bytes]], T]) -> AsyncIterator[T]:
        """The frames as they come, those that are ready at the same time put together."""


async def watch_response(
    request: Request, scope: RequestScope, output: Output, storage: Watcher, options: ListOptions
) -> Response:
    """Errors before the first event are ordinary answers, except that a revision which is too old is an ERROR event."""
    serializer = negotiate_stream(output, scope.served.serializers)
    encoder = event_encoder(request, scope, output)
    refused = refusal(request) if is_websocket_request(request) else None
    if refused is not None:
        return refused
    timeout = _timeout(scope, options)
    try:
        watcher = await storage.watch(
            scope.context(request), options, deadline=asyncio.get_running_loop().time() + timeout
        )
    except Expired as error:
        frame = serializer.event("ERROR", serializer.encode(error.status))

        async def stream(together: Callable[[list[bytes]], T]) -> AsyncIterator[T]:
            yield together([frame])

        return _answer(request, serializer, stream)
    if request.watched is not None:
        watcher = request.watched(watcher)
    labels = (scope.resource.group, scope.resource.version, scope.resource.resource)
    return _answer(request, serializer, partial(_stream, watcher, encoder, serializer, timeout=timeout, labels=labels))


def _answer(request: Request, serializer: Serializer, stream: _Streaming) -> Response:
    if is_websocket_request(request):
        prefix = serializer.event_prefix  # a WebSocket has frames of its own
        messages = stream(lambda frames: [frame[prefix:] for frame in frames])
        return accepted(request, TEXT if serializer.is_text else BINARY, messages)
    return Response(200, stream(b"".join), [(b"content-type", serializer.stream_media_type.encode())])


def _timeout(scope: RequestScope, options: ListOptions) -> float:
    """Without one, somewhere between once and twice the least: clients should not all come back at once."""
    asked = seconds(options.timeout_seconds or 0).total_seconds()
    return asked or scope.run_options.min_request_timeout * (1 + random.random())


async def _stream(
    watcher: CacheWatcher,
    encoder: EventEncoder,
    serializer: Serializer,
    together: Callable[[list[bytes]], T],
    *,
    timeout: float,
    labels: Labels,
) -> AsyncIterator[T]:
    """An object that cannot be read, or a past that is gone, ends the watch with an ERROR event."""
    expiry = asyncio.get_running_loop().call_later(timeout, watcher.close)
    try:
        async for event in watcher:
            for events in slices([event, *watcher.drain()]):
                frames = await offload_by_size(sum(map(encoder.work, events)), _frames, encoder, events)
                for frame in frames:
                    WATCH_EVENTS.inc(labels)
                    WATCH_EVENT_SIZES.observe(labels, len(frame))
                yield together(frames)
            del event, events, frames, frame  # so that nothing of it stays until the next event comes
    except Undecodable as error:
        yield together([serializer.event("ERROR", serializer.encode(InternalError.of(str(error)).status))])
    except Compacted:
        expired = Expired("The resourceVersion for the provided watch is too old.")
        yield together([serializer.event("ERROR", serializer.encode(expired.status))])
    finally:
        expiry.cancel()
        watcher.abandon()


def _frames(encode: EventEncoder, events: Sequence[WatchEvent]) -> list[bytes]:
    return [encode(event) for event in events]
