"""The span that work belongs to. Whoever does something worth seeing says so here, whether it is traced or not:

    @spanned("cacher.Get", lambda self, key: {"key": key})      a span around each call
    event("About to Get from storage")                          a moment in the span around

Where nothing is traced, each costs no more than a look at one variable.
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
Attributes: TypeAlias = Mapping[str, Value]

INTERNAL: Final = "INTERNAL"
SERVER: Final = "SERVER"
CLIENT: Final = "CLIENT"


class Span(Protocol):
    """One piece of work in a trace, from `child` to `end`."""

    audit_id: str
    """Of the request that it belongs to."""
    ended: bool

    def child(self, name: str, attributes: Attributes | None = None, *, kind: str = INTERNAL) -> Span: ...

    def event(self, name: str, attributes: Attributes) -> None: ...

    def set(self, attributes: Attributes) -> None: ...

    def fail(self, why: str) -> None:
        """Mark it as failed."""

    def end(self) -> None: ...

    def carried(self) -> Headers:
        """Return the headers by which another server joins the trace."""


CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""None where nothing is traced. Tasks that a request leaves behind still see its span, which has `ended`."""


def event(name: str, attributes: Attributes | None = None) -> None:
    """Note in the span around what has happened."""
    span = CURRENT.get()
    if span is not None:
        span.event(name, attributes or {})


def spanned(
    name: str, attributes: Callable[..., Attributes]
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Puts a span around each call. `attributes` gets the arguments of the call, and is asked only if it is traced."""

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
    """Do the work in the span, which ends with it."""
    token = CURRENT.set(span)
    try:
        return await work
    finally:
        CURRENT.reset(token)
        span.end()


def audited(attributes: Attributes) -> Attributes:
    """Return the attributes with the audit id of the request that is served."""
    span = CURRENT.get()
    return {"audit-id": span.audit_id if span else "", **attributes}
