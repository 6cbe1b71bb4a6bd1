"""HTTP responses for results of the registry, in the negotiated media type and view."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any

import orjson

from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.list_encoding import PART, list_parts, list_view, whole_list
from pilothouse.apiserver.endpoints.negotiation import Output
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request, Response, Stream
from pilothouse.apiserver.offload import WORTH_A_THREAD
from pilothouse.apiserver.registry.operations import ListResult, Result
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.streams import close_stream, whole_or_stream
from pilothouse.apiserver.tracing.spans import CURRENT
from pilothouse.apiserver.tracing.verb_spans import serialized
from pilothouse.machinery.objects import Json

# As upstream: compressing smaller responses costs more than it saves.
_GZIP_FROM = 128 * 1024
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31


def object_response(
    request: Request, scope: RequestScope, output: Output, result: Result, *, status: int = 200
) -> Coroutine[Any, Any, Response]:
    """Respond with one object in the negotiated view."""
    if isinstance(result, StoredObject) and result.size > WORTH_A_THREAD:
        is_sent_as_stored = (
            output.serializer is JSON
            and output.convert is None
            and scope.served.view.convert is None
            and result.has_body
            and not output.pretty
            and request.audit is None
        )
        if not is_sent_as_stored:
            request.weight.at_least(result.size)
    work = request.weight.run(_encode_object, request, scope, output, result, status)
    return work if CURRENT.get() is None else serialized(request, output.serializer.media_type, work)


def _encode_object(request: Request, scope: RequestScope, output: Output, result: Result, status: int) -> Response:
    if output.convert is not None and not transform.is_status(result):
        return encoded(request, output, transform.single(request, scope, output.convert, result), status=status)
    if not isinstance(result, StoredObject):
        shown = result if transform.is_status(result) else scope.shown(result)
        return encoded(request, output, shown, status=status)
    view = scope.served.view
    if request.audit is not None and request.audit.wants_response:
        request.audit.log_response_object(JSON.wrap(JSON.piece(result, view), view, pretty=False))
    serializer = output.serializer
    return _respond(
        request, output, serializer.wrap(serializer.piece(result, view), view, pretty=output.pretty), status
    )


def list_response(
    request: Request, scope: RequestScope, output: Output, result: ListResult
) -> Coroutine[Any, Any, Response]:
    """Respond with a list in the negotiated view: a small list at once, a large list in parts."""
    work = _encode_list(request, scope, output, result)
    return work if CURRENT.get() is None else serialized(request, output.serializer.media_type, work)


async def _encode_list(request: Request, scope: RequestScope, output: Output, result: ListResult) -> Response:
    view = await list_view(request, scope, output.convert, result)
    if request.audit is not None and request.audit.wants_response:
        size = sum(stored.size for stored in view.objects)
        request.audit.log_response_later(size, partial(whole_list, JSON.lists(), view))
    parts = list_parts(output.serializer.lists(pretty=output.pretty), view)
    return _respond(request, output, await whole_or_stream(parts, PART), 200)


def encoded(request: Request, output: Output, obj: Json, *, status: int = 200) -> Response:
    """Respond with an object that is not stored. Every Status passes here, or is raised as a StatusError: a Status of
    a failure determines the HTTP code, so that clients that read only the code see the failure."""
    if transform.is_status(obj) and obj.get("status") != "Success":
        status = max(obj.get("code") or 500, 400)
        obj = obj | {"code": status}
    if request.audit is not None and request.audit.wants_response:
        request.audit.log_response_object(orjson.dumps(obj))
    return _respond(request, output, output.serializer.encode(obj, pretty=output.pretty), status)


def _respond(request: Request, output: Output, body: bytes | Stream, status: int) -> Response:
    return compressed(request, Response(status, body, [(b"content-type", output.serializer.media_type.encode())]))


def compressed(request: Request, response: Response) -> Response:
    """Compress the body if it is large and the client accepts gzip. Return the response."""
    body = response.body
    if isinstance(body, bytes) and len(body) < _GZIP_FROM:
        return response
    if not enabled("APIResponseCompression") or "gzip" not in request.header(b"accept-encoding"):
        return response
    response.body = _gzip(body if not isinstance(body, bytes) else _single_chunk(body))
    return response.with_header(b"content-encoding", b"gzip").with_header(b"vary", b"Accept-Encoding")


async def _single_chunk(body: bytes) -> Stream:
    yield body


async def _gzip(parts: Stream) -> AsyncIterator[bytes]:
    """Compress in a thread: zlib releases the interpreter lock, so the event loop stays free."""
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    try:
        async for part in parts:
            chunk = await asyncio.to_thread(compressor.compress, part)
            if chunk:
                yield chunk
        yield compressor.flush()
    finally:
        await close_stream(parts)
