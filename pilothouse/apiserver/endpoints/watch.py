"""WATCH a collection: a stream of events until the client disconnects, the timeout expires or the server stops.

The stream is a response body, or messages on a WebSocket.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Protocol, TypeVar

from pilothouse.apiserver.endpoints.negotiation import negotiate_output, negotiate_stream
from pilothouse.apiserver.endpoints.options import list_options
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.watch_stream import event_encoder, watch_frames
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Lister, Watcher
from pilothouse.apiserver.serving.websocket import accepted, is_websocket_request, refusal
from pilothouse.apiserver.serving.websocket_frames import BINARY, TEXT
from pilothouse.machinery.durations import seconds
from pilothouse.machinery.errors import Expired, MethodNotAllowed

T = TypeVar("T")


class _Stream(Protocol):
    def __call__(self, join: Callable[[list[bytes]], T]) -> AsyncIterator[T]:
        """Yield the frames; `join` combines the frames that are ready at the same time."""


def watch_handler(storage: Lister, scope: RequestScope) -> Handler:
    """Return the handler of WATCH. If the storage is not a `Watcher`, the handler answers 405."""
    watchable = storage if isinstance(storage, Watcher) else None

    async def watch(request: Request) -> Response:
        """Errors before the first event are ordinary responses, except that an expired revision is an ERROR event."""
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
        except Expired as error:
            frame = serializer.event("ERROR", serializer.encode(error.status))

            async def stream(join: Callable[[list[bytes]], T]) -> AsyncIterator[T]:
                yield join([frame])

            return _respond(request, serializer, stream)
        if request.watched is not None:
            watcher = request.watched(watcher)
        labels = (scope.resource.group, scope.resource.version, scope.resource.resource)
        frames = partial(watch_frames, watcher, encoder, serializer, timeout=timeout, labels=labels)
        return _respond(request, serializer, frames)

    return watch


def _respond(request: Request, serializer: Serializer, stream: _Stream) -> Response:
    if is_websocket_request(request):
        prefix = serializer.event_prefix  # a WebSocket has its own frames
        messages = stream(lambda frames: [frame[prefix:] for frame in frames])
        return accepted(request, TEXT if serializer.is_text else BINARY, messages)
    return Response(200, stream(b"".join), [(b"content-type", serializer.stream_media_type.encode())])
