"""W3C Trace Context: parsing and propagation of the trace headers, and the contract of tracers, which start traces."""

from __future__ import annotations

import re
from typing import Final, Protocol

from pilothouse.apiserver.http import Headers, Request
from pilothouse.apiserver.tracing.spans import INTERNAL, Span, SpanAttributes
from pilothouse.machinery.dataclass import dataclass

PARENT: Final = b"traceparent"
_STATE, _BAGGAGE = b"tracestate", b"baggage"
_LONGEST = {_STATE: 512, _BAGGAGE: 8192}
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class RemoteParent:
    """The remote span of the caller."""

    trace_id: int
    span_id: int
    sampled: bool


def remote_parent(request: Request) -> RemoteParent | None:
    """Return the parent span, or None for a missing or invalid header."""
    found = _FORM.fullmatch(request.header(PARENT))
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more):
        return None
    parent = RemoteParent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return parent if parent.trace_id and parent.span_id else None


def written(trace_id: int, span_id: int, *, sampled: bool) -> bytes:
    return b"00-%032x-%016x-%02x" % (trace_id, span_id, _SAMPLED if sampled else 0)


def companions(request: Request) -> Headers:
    """Return the further trace headers, propagated verbatim within their size limits."""
    found = ((name, request.header(name).encode("latin-1")) for name in _LONGEST)
    return [(name, value) for name, value in found if value and len(value) <= _LONGEST[name]]


class PassedOn:
    """Span of an unrecorded request: only propagates the request's trace headers."""

    __slots__ = ("_headers", "audit_id", "ended")

    def __init__(self, request: Request) -> None:
        self._headers: Headers = [(PARENT, request.header(PARENT).encode("latin-1")), *companions(request)]
        self.audit_id = request.audit_id
        self.ended = False

    def child(self, name: str, attributes: SpanAttributes | None = None, *, kind: str = INTERNAL) -> Span:
        return self

    def event(self, name: str, attributes: SpanAttributes) -> None: ...

    def set(self, attributes: SpanAttributes) -> None: ...

    def fail(self, reason: str) -> None: ...

    def end(self) -> None:
        """Do nothing: the span lasts as long as the request."""

    def carried(self) -> Headers:
        return self._headers


@dataclass(frozen=True, slots=True)
class Beginning:
    """The start of a trace in this server, or its continuation."""

    name: str
    kind: str = INTERNAL
    parent: RemoteParent | None = None
    """The parent span."""
    link: RemoteParent | None = None
    """A linked span whose trace is not continued, because the client is not trusted."""
    audit_id: str = ""
    companions: Headers | tuple[()] = ()
    """Further headers to propagate."""


class Tracer(Protocol):
    def samples(self) -> bool:
        """Return the sampling decision for a new trace."""

    def begin(self, beginning: Beginning) -> Span: ...
