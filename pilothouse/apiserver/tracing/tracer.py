"""Tracers: sampling decisions, and the start of traces."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.tracing.spans import INTERNAL, Span
from pilothouse.apiserver.tracing.trace_context import RemoteParent
from pilothouse.machinery.dataclass import dataclass


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
