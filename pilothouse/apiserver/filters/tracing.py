"""Tracing: the decision which requests are traced, and the spans of filters.

As upstream, only trace headers of system:masters and system:monitoring select the trace and the recording. Trace
headers of other users are linked and passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.tracing.http_spans import answered, asked, span_name, status_of
from pilothouse.apiserver.tracing.spans import CURRENT, SERVER, Span, within
from pilothouse.apiserver.tracing.trace_context import (
    PARENT,
    Beginning,
    PassedOn,
    RemoteParent,
    Tracer,
    companions,
    remote_parent,
)
from pilothouse.apiserver.tracing.verb_spans import awaited
from pilothouse.machinery.status_error import StatusError

_TRUSTED = frozenset({SYSTEM_PRIVILEGED_GROUP, "system:monitoring"})


def with_filter_span(tracer: Tracer | None, name: str) -> list[Filter]:
    """Return a filter that adds a span around the inner handler; no filter without a tracer."""

    def wrap(handler: Handler) -> Handler:
        def call(request: Request) -> Awaitable[Response]:
            around = CURRENT.get()
            return handler(request) if around is None else within(around.child(name), awaited(handler, request))

        return call

    return [] if tracer is None else [wrap]


def with_authentication_span(tracer: Tracer | None) -> list[Filter]:
    """Begin a trace before authentication. Requests of trusted users continue it unless they name another trace."""

    def wrap(handler: Handler) -> Handler:
        assert tracer is not None

        def call(request: Request) -> Awaitable[Response]:
            if not tracer.samples():
                return handler(request)
            span = tracer.begin(Beginning("authentication", audit_id=request.audit_id))
            return within(span, awaited(handler, request))

        return call

    return [] if tracer is None else [wrap]


def with_tracing(tracer: Tracer | None) -> Filter:
    """Add the span of the request. Without a tracer, only pass on trace headers."""

    def wrap(handler: Handler) -> Handler:
        def pass_on(request: Request) -> Awaitable[Response]:
            if request.header(PARENT):
                return within(PassedOn(request), awaited(handler, request))
            return handler(request)

        def trace(request: Request) -> Awaitable[Response]:
            assert tracer is not None
            span = _begun(tracer, request)
            if span is not None:
                return _traced(span, handler, request)
            return pass_on(request) if CURRENT.get() is None else _untraced(pass_on, request)

        return pass_on if tracer is None else trace

    return wrap


def with_own_tracing(tracer: Tracer | None) -> list[Filter]:
    """Trace the server's own requests as parts of the request that caused them."""

    def wrap(handler: Handler) -> Handler:
        assert tracer is not None

        def call(request: Request) -> Awaitable[Response]:
            around = CURRENT.get()
            if around is not None and not around.ended:
                return _traced(around.child(span_name(request), kind=SERVER), handler, request)
            if tracer.samples():
                return _traced(tracer.begin(Beginning(span_name(request), SERVER)), handler, request)
            return handler(request) if around is None else _untraced(handler, request)

        return call

    return [] if tracer is None else [wrap]


def _begun(tracer: Tracer, request: Request) -> Span | None:
    """Return the span; None for a request that is not recorded."""
    parent = remote_parent(request) if request.header(PARENT) else None
    if _TRUSTED.isdisjoint(request.user.groups):
        return tracer.begin(_beginning(request, link=parent)) if tracer.samples() else None
    if parent is not None:
        return tracer.begin(_beginning(request, parent=parent)) if parent.sampled else None
    around = CURRENT.get()
    return None if around is None else around.child(span_name(request), kind=SERVER)


def _beginning(request: Request, parent: RemoteParent | None = None, link: RemoteParent | None = None) -> Beginning:
    return Beginning(span_name(request), SERVER, parent, link, request.audit_id, companions(request))


async def _traced(span: Span, handler: Handler, request: Request) -> Response:
    token = CURRENT.set(span)
    span.set(asked(request))
    try:
        return answered(span, await handler(request))
    except StatusError as error:
        status_of(span, error.code)
        span.end()
        raise
    except BaseException as error:
        span.fail(str(error))
        span.end()
        raise
    finally:
        CURRENT.reset(token)


async def _untraced(handler: Handler, request: Request) -> Response:
    """Call the handler without recording."""
    token = CURRENT.set(None)
    try:
        return await handler(request)
    finally:
        CURRENT.reset(token)
