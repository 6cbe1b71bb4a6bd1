"""The external latency of a request: webhooks, and time in the queue of flow control.

The remaining time is the server's own latency, which the SLI metrics measure.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True, eq=False)
class ExternalLatency:
    """In seconds. Mutating webhooks run in sequence, validating webhooks concurrently."""

    mutating: float = 0.0
    validating: float = 0.0
    queued: float = 0.0

    @property
    def total(self) -> float:
        return self.mutating + self.validating + self.queued


_CURRENT: ContextVar[ExternalLatency | None] = ContextVar("external_latency", default=None)


def begin_external_latency() -> tuple[Token[ExternalLatency | None], ExternalLatency]:
    """Start to measure the current request. Requests that the server makes itself are measured separately."""
    time = ExternalLatency()
    return _CURRENT.set(time), time


def end_external_latency(token: Token[ExternalLatency | None]) -> None:
    _CURRENT.reset(token)


def webhook_took(seconds: float, *, mutating: bool) -> None:
    if (current := _CURRENT.get()) is None:
        return
    if mutating:
        current.mutating += seconds
    else:
        current.validating = max(current.validating, seconds)


def waited_in_queue(seconds: float) -> None:
    if (current := _CURRENT.get()) is not None:
        current.queued += seconds
