"""From a result of the registry to an HTTP answer, in the media type and the view that were negotiated."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator

import orjson

from pilothouse.apiserver.beside_the_loop import WORTH_A_THREAD
from pilothouse.apiserver.endpoints import transform
from pilothouse.apiserver.endpoints.negotiation import Output
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.interface import ListResult, Result
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json

# As upstream: below this, compressing costs more than it saves.
_GZIP_FROM = 128 * 1024
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31
# Lists beyond this many objects are sent in parts, so that no more than a part is held beside the objects.
_STREAM_FROM = 400


async def object_response(
    request: Request, scope: RequestScope, output: Output, result: Result, *, status: int = 200
) -> Response:
    """One object, in the negotiated view."""
    if (
        isinstance(result, StoredObject)
        and result.size > WORTH_A_THREAD
        and not _is_quick(request, scope, output, result)
    ):
        request.weight.at_least(result.size)
    return await request.weight.carry(_object_response, request, scope, output, result, status=status)


def _is_quick(request: Request, scope: RequestScope, output: Output, stored: StoredObject) -> bool:
    """Whether the answer is what the store has, and how large that is does not matter."""
    as_stored = output.serializer is JSON and output.convert is None and scope.view.convert is None
    return as_stored and stored.has_body and not output.pretty and request.audit is None


def _object_response(request: Request, scope: RequestScope, output: Output, result: Result, *, status: int) -> Response:
    if output.convert is not None and not transform.is_status(result):
        obj = transform.single(request, scope, output.convert, result)
        return encoded(request, output, obj, status=status)
    if not isinstance(result, StoredObject):
        obj = result if transform.is_status(result) else scope.served(result)
        return encoded(request, output, obj, status=status)
    if request.audit is not None and request.audit.wants_response:
        request.audit.log_response_object(JSON.whole(JSON.piece(result, scope.view), scope.view, pretty=False))
    serializer = output.serializer
    body = serializer.whole(serializer.piece(result, scope.view), scope.view, pretty=output.pretty)
    return _finish(request, output, body, status)


def list_response(request: Request, scope: RequestScope, output: Output, result: ListResult) -> Response:
    if output.convert is not None:
        return encoded(request, output, transform.listed(request, scope, output.convert, result))
    serializer = output.serializer
    if request.audit is not None and request.audit.wants_response:
        request.audit.log_response_object(_json_list(scope, result))
    pieces = [serializer.piece(stored, scope.view) for stored in result.objects]
    parts = serializer.list(scope.view, list_metadata(result, typed_items=scope.view.typed_items), pieces)
    if output.pretty:
        return _finish(request, output, _indented(b"".join(parts), output), 200)
    if len(pieces) < _STREAM_FROM:
        return _finish(request, output, b"".join(parts), 200)
    return _stream(request, output, parts)


def _json_list(scope: RequestScope, result: ListResult) -> bytes:
    pieces = [JSON.piece(stored, scope.view) for stored in result.objects]
    return b"".join(JSON.list(scope.view, list_metadata(result, typed_items=scope.view.typed_items), pieces))


def encoded(request: Request, output: Output, obj: Json, *, status: int = 200) -> Response:
    if request.audit is not None and request.audit.wants_response:
        request.audit.log_response_object(orjson.dumps(obj))
    return _finish(request, output, output.serializer.encode(obj, pretty=output.pretty), status)


def list_metadata(result: ListResult, *, typed_items: bool = False) -> Json:
    """A list that comes from no store has no revision. One of custom resources always says how to continue."""
    meta: Json = {"resourceVersion": str(result.revision)} if result.revision else {}
    if result.continue_token or typed_items:
        meta["continue"] = result.continue_token
    if result.remaining:
        meta["remainingItemCount"] = result.remaining
    return meta


def _indented(body: bytes, output: Output) -> bytes:
    if output.serializer.media_type != "application/json":
        return body
    return output.serializer.encode(orjson.loads(body), pretty=True)


def _finish(request: Request, output: Output, body: bytes, status: int) -> Response:
    return compressed(request, Response(status, body, [(b"content-type", output.serializer.media_type.encode())]))


def compressed(request: Request, response: Response) -> Response:
    """The answer as it is, or compressed if that is worth it and the client can take it."""
    body = response.body
    if not isinstance(body, bytes) or len(body) < _GZIP_FROM or not _accepts_gzip(request):
        return response
    response.body = _compressed(iter((body,)))
    return _as_gzip(response)


def _stream(request: Request, output: Output, parts: Iterator[bytes]) -> Response:
    response = Response(200, _plain(parts), [(b"content-type", output.serializer.media_type.encode())])
    if not _accepts_gzip(request):
        return response
    response.body = _compressed(parts)
    return _as_gzip(response)


def _accepts_gzip(request: Request) -> bool:
    return "gzip" in request.header(b"accept-encoding")


def _as_gzip(response: Response) -> Response:
    return response.with_header(b"content-encoding", b"gzip").with_header(b"vary", b"Accept-Encoding")


async def _plain(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _compressed(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """zlib lets go of the interpreter, so a thread keeps the event loop free while it works."""
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for part in parts:
        chunk = await asyncio.to_thread(compressor.compress, part)
        if chunk:
            yield chunk
    yield compressor.flush()
