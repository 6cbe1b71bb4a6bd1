"""The current span, and the instrumentation API:

    @spanned("cacher.Get", lambda self, key: {"key": key})      a span around each call
    event("About to Get from storage")                          an event in the current span

Without tracing, each costs a single variable lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

from pilothouse.apiserver.http import Headers

P = ParamSpec("P")
T = TypeVar("T")

Value: TypeAlias = str | int | bool
SpanAttributes: TypeAlias = Mapping[str, Value]

INTERNAL: Final = "INTERNAL"
SERVER: Final = "SERVER"
CLIENT: Final = "CLIENT"


class Span(Protocol):
    """A unit of work in a trace, from `child` to `end`."""

    audit_id: str
    """Audit id of the request."""
    ended: bool

    def child(self, name: str, attributes: SpanAttributes | None = None, *, kind: str = INTERNAL) -> Span: ...

    def event(self, name: str, attributes: SpanAttributes) -> None: ...

    def set(self, attributes: SpanAttributes) -> None: ...

    def fail(self, reason: str) -> None:
        """Mark the span as failed."""

    def end(self) -> None: ...

    def carried(self) -> Headers:
        """Return the headers that propagate the trace."""


CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""None without tracing. Background tasks of a request still see its span, with `ended` set."""


def event(name: str, attributes: SpanAttributes | None = None) -> None:
    """Record an event in the current span."""
    span = CURRENT.get()
    if span is not None:
        span.event(name, attributes or {})


def spanned(
    name: str, attributes: Callable[..., SpanAttributes]
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Wrap each call in a span. `attributes` receives the call's arguments, and is evaluated only for traced calls."""

    def decorate(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(work)
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            around = CURRENT.get()
            if around is None or around.ended:
                return work(*args, **kwargs)
            return within(around.child(name, attributes(*args, **kwargs)), work(*args, **kwargs))

        return call

    return decorate


async def within(span: Span, work: Coroutine[Any, Any, T]) -> T:
    """Run the work in the span, and end the span."""
    token = CURRENT.set(span)
    try:
        return await work
    finally:
        CURRENT.reset(token)
        span.end()


def audited(attributes: SpanAttributes) -> SpanAttributes:
    """Return the attributes with the audit id of the current request."""
    span = CURRENT.get()
    return {"audit-id": span.audit_id if span else "", **attributes}
