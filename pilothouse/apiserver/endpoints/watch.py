"""WATCH: a stream of events, one frame each, until the client goes, the time is up or the server stops.

The bytes of an event are made once and shared by every watcher that wants the same form of it. However many events
are ready, no more than a part of the stream is held for a client that does not read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from pilothouse.apiserver.beside_the_loop import by_size
from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.list_parts import slices
from pilothouse.apiserver.endpoints.metrics import WATCH_EVENT_SIZES, WATCH_EVENTS
from pilothouse.apiserver.endpoints.negotiation import Output, negotiate_stream
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer, View
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.interface import Watcher
from pilothouse.apiserver.registry.options import ListOptions
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import Watcher as CacheWatcher
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.tallies import Labels
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import seconds
from pilothouse.machinery.errors import Expired, InternalError, NotAcceptable
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, metadata


async def watch_response(
    request: Request, scope: RequestScope, output: Output, storage: Watcher, options: ListOptions
) -> Response:
    """Errors before the first event are ordinary answers, except that a revision which is too old is an ERROR event."""
    serializer = negotiate_stream(output, scope.serializers)
    encoder = _event_encoder(request, scope, output)
    timeout = _timeout(scope, options)
    headers = [(b"content-type", serializer.stream_media_type.encode())]
    try:
        watcher = await storage.watch(
            scope.context(request), options, deadline=asyncio.get_running_loop().time() + timeout
        )
    except Expired as error:
        return Response(200, _only(serializer.event("ERROR", serializer.encode(error.status))), headers)
    labels = (scope.resource.group, scope.resource.version, scope.resource.resource)
    return Response(200, _stream(watcher, encoder, serializer, timeout=timeout, labels=labels), headers)


def _timeout(scope: RequestScope, options: ListOptions) -> float:
    """Without one, somewhere between once and twice the least: clients should not all come back at once."""
    asked = seconds(options.timeout_seconds or 0).total_seconds()
    return asked or scope.min_request_timeout * (1 + random.random())


async def _only(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


async def _stream(
    watcher: CacheWatcher,
    encoder: _Encoder,
    serializer: Serializer,
    *,
    timeout: float,
    labels: Labels,
) -> AsyncIterator[bytes]:
    """An object that cannot be read ends the watch with an ERROR event."""
    expiry = asyncio.get_running_loop().call_later(timeout, watcher.close)
    try:
        async for event in watcher:
            for events in slices([event, *watcher.drain()]):
                frames = await by_size(sum(map(encoder.work, events)), _frames, encoder, events)
                for frame in frames:
                    WATCH_EVENTS.inc(labels)
                    WATCH_EVENT_SIZES.observe(labels, len(frame))
                yield b"".join(frames)
    except Undecodable as error:
        yield serializer.event("ERROR", serializer.encode(InternalError.of(str(error)).status))
    finally:
        expiry.cancel()
        watcher.abandon()


def _frames(encode: _Encoder, events: Sequence[WatchEvent]) -> list[bytes]:
    return [encode(event) for event in events]


class _Encoder(Protocol):
    def work(self, event: WatchEvent) -> int:
        """How many stored bytes have to be encoded before the event is."""

    def __call__(self, event: WatchEvent) -> bytes: ...


def _event_encoder(request: Request, scope: RequestScope, output: Output) -> _Encoder:
    if output.convert is None:
        return _Shared(output.serializer, scope.view)
    return _Converted(request, scope, output, output.serializer)


class _Shared:
    """Events as they are, encoded once for all."""

    __slots__ = ("_form", "_lists", "_serializer", "_view")

    def __init__(self, serializer: Serializer, view: View) -> None:
        self._serializer, self._view = serializer, view
        self._form = (serializer.media_type, view.kind)
        self._lists = serializer.lists()

    def work(self, event: WatchEvent) -> int:
        return 0 if event.has_encoded(self._form) else self._lists.fresh((event.object,), self._view)

    def __call__(self, event: WatchEvent) -> bytes:
        return event.encoded(self._form, self._made)

    def _made(self, event: WatchEvent) -> bytes:
        serializer, view = self._serializer, self._view
        return serializer.event(event.type, serializer.whole(serializer.piece(event.object, view), view))


@dataclass(slots=True)
class _Converted:
    """Events as tables or as metadata only. The first table has the column definitions, the others need them not."""

    request: Request
    scope: RequestScope
    output: Output
    serializer: Serializer = JSON
    headers: bool = True

    def __post_init__(self) -> None:
        if self.output.convert and self.output.convert.kind == "Table":
            transform.include_object(self.request)

    def work(self, event: WatchEvent) -> int:
        return event.size

    def __call__(self, event: WatchEvent) -> bytes:
        return self.serializer.event(event.type, self.serializer.encode(self._object(event)))

    def _object(self, event: WatchEvent) -> Json:
        target = self.output.convert
        assert target is not None
        if target.kind != "Table":
            return self._metadata(target, event)
        obj = self.scope.view.object(event.object)
        revision = {"resourceVersion": metadata(obj)["resourceVersion"]}
        headers, self.headers = self.headers, False
        shown = transform.table(self.scope, target, revision, headers=headers)
        if event.type is not EventType.BOOKMARK:
            shown["rows"].append(transform.row(self.scope, target, obj, transform.include_object(self.request)))
        return shown

    def _metadata(self, target: GroupVersionKind, event: WatchEvent) -> Json:
        """The object as it is where a list was asked for, which no event is."""
        try:
            return transform.single(self.request, self.scope, target, event.object)
        except NotAcceptable:
            return self.scope.view.object(event.object)
