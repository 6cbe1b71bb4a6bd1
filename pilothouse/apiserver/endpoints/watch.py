"""WATCH a collection: a stream of events until the client disconnects, the timeout expires or the server stops.

The stream is a response body, or messages on a WebSocket. At most one part of the stream (`list_encoding.PART`) is held
for a slow client, however many events are ready. An event is encoded once for all watchers that want the same form.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol, TypeVar

from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.list_encoding import slices
from pilothouse.apiserver.endpoints.negotiation import Output, negotiate_output, negotiate_stream
from pilothouse.apiserver.endpoints.options import list_options
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer, View
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.offload import WORTH_A_THREAD, offload_by_size
from pilothouse.apiserver.registry.interface import Lister, Watcher
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.serving.websocket import BINARY, TEXT, accepted, is_websocket_request, refusal
from pilothouse.apiserver.storage.cacher.events import INITIAL_EVENTS_END, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted, Undecodable
from pilothouse.apiserver.streams import Write
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally, Labels
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import seconds
from pilothouse.machinery.errors import Expired, MethodNotAllowed, NotAcceptable
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, metadata
from pilothouse.machinery.server_errors import InternalError, Timeout

T = TypeVar("T")
_GZIP_LEVEL = 1

_log = logging.getLogger(__name__)


def watch_handler(storage: Lister, scope: RequestScope) -> Handler:
    """Return the handler of WATCH. If the storage is not a `Watcher`, the handler answers 405."""
    watchable = storage if isinstance(storage, Watcher) else None

    async def watch(request: Request) -> Response:
        """Errors before the first event are ordinary responses, except that an expired revision and a revision that the
        watch cache does not reach in time are ERROR events."""
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        options = await request.weight.run(list_options, request, scope)
        if watchable is None:
            raise MethodNotAllowed.of(request.info.group_resource, "watch")
        serializer = negotiate_stream(output, scope.served.serializers)
        encoder = event_encoder(request, scope, output)
        refused = refusal(request) if is_websocket_request(request) else None
        if refused is not None:
            return refused
        # Random between once and twice the minimum, so that clients do not reconnect at the same time.
        default_timeout = scope.run_options.min_request_timeout * (1 + random.random())
        timeout = seconds(options.timeout_seconds or 0).total_seconds() or default_timeout
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            watcher = await watchable.watch(scope.context(request), options, deadline=deadline)
        except (Expired, Timeout) as error:
            frame = serializer.event("ERROR", serializer.encode(error.status))
            return _respond(request, serializer, _OneFrame(frame))
        if request.watched is not None:
            watcher = request.watched(watcher)
        labels = (scope.resource.group, scope.resource.version, scope.resource.resource)
        frames = _WatchFrames(watcher, encoder, serializer, timeout, labels)
        is_list = bool(options.send_initial_events) and options.allow_watch_bookmarks
        return _respond(request, serializer, frames, is_list=is_list)

    return watch


def _respond(request: Request, serializer: Serializer, frames: _Frames, *, is_list: bool = False) -> Response:
    if is_websocket_request(request):
        prefix = serializer.event_prefix  # a WebSocket has its own frames
        messages = frames.joined_by(lambda frames: [frame[prefix:] for frame in frames])
        return accepted(request, TEXT if serializer.is_text else BINARY, messages)
    headers = [(b"content-type", serializer.stream_media_type.encode())]
    if is_list and "gzip" in request.header(b"accept-encoding") and enabled("WatchListCompression"):
        return Response(200, _gzip(frames), [*headers, (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")])
    return Response(200, _Body(frames), headers)


async def _gzip(frames: _Frames) -> AsyncGenerator[bytes, None]:
    """Compress frames that are ready at the same time as one member of the gzip stream: no memory is held between."""
    async with aclosing(frames.joined_by(b"".join)) as chunks:
        async for chunk in chunks:
            yield await offload_by_size(len(chunk), partial(gzip.compress, compresslevel=_GZIP_LEVEL, mtime=0), chunk)


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


class _Frames(Protocol):
    def joined_by(self, join: Callable[[list[bytes]], T]) -> AsyncGenerator[T, None]:
        """Yield all frames; `join` combines the frames that are ready at the same time."""

    def push_to(self, write: Write) -> None:
        """Write frames at once while the generator waits."""


class _WatchFrames:
    """The frames of all events until the watcher closes or the timeout expires.

    An unreadable object or a compacted revision ends the watch with an ERROR event, an object without the requested
    view ends the watch without an event.
    """

    def __init__(
        self, watcher: CacheWatcher, encoder: EventEncoder, serializer: Serializer, timeout: float, labels: Labels
    ) -> None:
        self._watcher = watcher
        self._encoder = encoder
        self._serializer = serializer
        self._timeout = timeout
        self._labels = labels
        self._sizes = WATCH_EVENT_SIZES.row(labels)

    async def joined_by(self, join: Callable[[list[bytes]], T]) -> AsyncGenerator[T, None]:
        watcher, serializer = self._watcher, self._serializer
        expiry = asyncio.get_running_loop().call_later(self._timeout, watcher.close)
        try:
            async for event in watcher:
                for events in slices([event, *watcher.drain()]):
                    frames = await offload_by_size(self._work(events), self._encode, events)
                    self._count(frames)
                    yield join(frames)
                del event, events, frames  # release the memory while waiting for the next event
        except NotAcceptable as error:
            _log.error("Failed to encode watch event: %s", error)
        except Undecodable as error:
            yield join([serializer.event("ERROR", serializer.encode(InternalError.of(str(error)).status))])
        except Compacted:
            expired = Expired("The resourceVersion for the provided watch is too old.")
            yield join([serializer.event("ERROR", serializer.encode(expired.status))])
        finally:
            expiry.cancel()
            watcher.abandon()

    def push_to(self, write: Write) -> None:
        if isinstance(self._encoder, _Tables):
            return  # its first event differs from the others, so that none can be encoded twice

        known = self._encoder.known

        def push(events: Sequence[WatchEvent]) -> bool:
            frames = [frame for event in events if (frame := known(event)) is not None]
            if len(frames) < len(events):  # the first watcher encodes for the others
                if self._work(events) > WORTH_A_THREAD:
                    return False
                try:
                    frames = self._encode(events)
                except (NotAcceptable, Undecodable):
                    return False  # the generator meets the error again, and ends the watch
            if not write(frames[0] if len(frames) == 1 else b"".join(frames)):
                return False
            self._count(frames)
            return True

        self._watcher.push = push

    def _work(self, events: Sequence[WatchEvent]) -> int:
        return sum(map(self._encoder.work, events))

    def _encode(self, events: Sequence[WatchEvent]) -> list[bytes]:
        return [self._encoder(event) for event in events]

    def _count(self, frames: list[bytes]) -> None:
        for frame in frames:
            WATCH_EVENTS.inc(self._labels)
            self._sizes.observe(len(frame))


class _OneFrame:
    def __init__(self, frame: bytes) -> None:
        self._frame = frame

    async def joined_by(self, join: Callable[[list[bytes]], T]) -> AsyncGenerator[T, None]:
        yield join([self._frame])

    def push_to(self, write: Write) -> None:
        """Nothing follows the frame."""


class _Body:
    """The frames of a watch as the body of a response. See `PushStream`."""

    __slots__ = ("_chunks", "_frames")

    def __init__(self, frames: _Frames) -> None:
        self._frames = frames
        self._chunks = frames.joined_by(b"".join)

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        await self._chunks.aclose()

    def push_to(self, write: Write) -> None:
        self._frames.push_to(write)


class EventEncoder(Protocol):
    def __call__(self, event: WatchEvent) -> bytes:
        """Return the encoded event."""

    def work(self, event: WatchEvent) -> int:
        """Return the number of stored bytes that must be encoded for the event; 0 if the encoding is cached."""

    def known(self, event: WatchEvent) -> bytes | None:
        """Return the encoded event if the encoding is cached."""


def event_encoder(request: Request, scope: RequestScope, output: Output) -> EventEncoder:
    if output.convert is None:
        return _Whole(scope.served.view, output.serializer)
    if output.convert.kind == "Table":
        return _Tables(request, scope, output.convert, output.serializer)
    return _Metadata(request, scope, output.convert, output.serializer)


class _Whole:
    """Encodes events with whole objects."""

    __slots__ = ("_form", "_lists", "_serializer", "_view")

    def __init__(self, view: View, serializer: Serializer) -> None:
        self._view = view
        self._serializer = serializer
        # A string, because its hash is computed once.
        self._form = f"{serializer.media_type} {view.kind} {random.randrange(serializer.variants)}"
        self._lists = serializer.lists()

    def work(self, event: WatchEvent) -> int:
        return 0 if event.has_encoded(self._form) else self._lists.bytes_to_encode((event.object,), self._view)

    def known(self, event: WatchEvent) -> bytes | None:
        return event.known_encoding(self._form)

    def __call__(self, event: WatchEvent) -> bytes:
        return event.encoded(self._form, self._make)

    def _make(self, event: WatchEvent) -> bytes:
        piece = self._serializer.piece(event.object, self._view)
        return self._serializer.event(event.type, self._serializer.wrap(piece, self._view))


@dataclass(slots=True)
class _Metadata:
    """Encodes events with metadata only. Raises NotAcceptable if the client requested the view of a list."""

    request: Request
    scope: RequestScope
    target: GroupVersionKind
    serializer: Serializer

    def work(self, event: WatchEvent) -> int:
        return 0 if event.has_encoded(self._form) else event.size

    def known(self, event: WatchEvent) -> bytes | None:
        return event.known_encoding(self._form)

    def __call__(self, event: WatchEvent) -> bytes:
        return event.encoded(self._form, self._make)

    @property
    def _form(self) -> Hashable:
        return (self.serializer.media_type, self.scope.served.view.kind, self.target)

    def _make(self, event: WatchEvent) -> bytes:
        obj = transform.single(self.request, self.scope, self.target, event.object)
        return self.serializer.event(event.type, self.serializer.encode(obj))


@dataclass(slots=True)
class _Tables:
    """Encodes events and bookmarks as tables. Only the first event has column definitions."""

    request: Request
    scope: RequestScope
    target: GroupVersionKind
    serializer: Serializer
    headers: bool = True

    def __post_init__(self) -> None:
        transform.include_object(self.request)

    def work(self, event: WatchEvent) -> int:
        return event.size

    def known(self, event: WatchEvent) -> bytes | None:
        return None

    def __call__(self, event: WatchEvent) -> bytes:
        stored = event.object.parse()
        revision = {"resourceVersion": metadata(stored)["resourceVersion"]}
        headers, self.headers = self.headers, self.scope.served.repeats_columns
        table = transform.table(self.scope, self.target, revision, headers=headers)
        table["rows"].append(transform.row(self.scope, self.target, stored, self._included(stored)))
        return self.serializer.event(event.type, self.serializer.encode(table))

    def _included(self, obj: Json) -> str:
        """Return the includeObject option. The bookmark that ends the initial events needs its metadata even without
        objects."""
        include = transform.include_object(self.request)
        ends_initial_events = INITIAL_EVENTS_END in annotations_of(obj)
        return "Metadata" if include == "None" and ends_initial_events else include
