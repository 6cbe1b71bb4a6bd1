"""Who starts traces: which requests are recorded, and where their spans begin."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.tracing.spans import INTERNAL, Span
from pilothouse.apiserver.tracing.trace_context import RemoteParent
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a trace begins in this server, or goes on."""

    name: str
    kind: str = INTERNAL
    parent: RemoteParent | None = None
    """The span that it is part of."""
    link: RemoteParent | None = None
    """A span that is only mentioned: its trace is not ours to write into."""
    audit_id: str = ""
    companions: Headers | tuple[()] = ()
    """What else is passed on with the trace."""


class Tracer(Protocol):
    def samples(self) -> bool:
        """Decide about a trace that begins here: whether it is recorded."""

    def begin(self, beginning: Beginning) -> Span: ...
