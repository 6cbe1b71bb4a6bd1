"""Verb spans: Get, List, Create, … around handlers, and SerializeObject around responses."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any

from pilothouse.apiserver.filters.request_log import protocol_version, trace_fields
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.tracing.spans import CURRENT, Span, within


def traced(name: str, handler: Handler) -> Handler:
    """Wrap the handler in a span for traced requests."""

    def call(request: Request) -> Awaitable[Response]:
        around = CURRENT.get()
        if around is None:
            return handler(request)
        return within(around.child(name, trace_fields(request)), awaited(handler, request))

    return call


async def awaited(handler: Handler, request: Request) -> Response:
    """Call the handler on await only, so that the enclosing span measures all of its work."""
    return await handler(request)


async def serialized(request: Request, media_type: str, work: Coroutine[Any, Any, Response]) -> Response:
    """Run the serialization of a traced request in a span."""
    around = CURRENT.get()
    assert around is not None
    around.event("About to write a response", {})
    span = around.child(
        "SerializeObject",
        {
            "audit-id": request.audit_id,
            "method": request.method,
            "url": request.path,
            "protocol": f"HTTP/{protocol_version(request)}",
            "mediaType": media_type,
        },
    )
    response = await within(span, _sized(span, work))
    around.event("Writing http response done", {})
    return response


async def _sized(span: Span, work: Coroutine[Any, Any, Response]) -> Response:
    response = await work
    if isinstance(response.body, bytes):
        span.event("Write call succeeded", {"size": len(response.body)})
    return response
