"""The time of a request that others take: webhooks that it waits for, and requests that come before it.

What is left is how long the server itself has worked on it, which is what its service level is measured by.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True, eq=False)
class ExternalLatency:
    """In seconds. Mutating webhooks are called one after the other, validating ones all at once."""

    mutating: float = 0.0
    validating: float = 0.0
    queued: float = 0.0

    @property
    def total(self) -> float:
        return self.mutating + self.validating + self.queued


_CURRENT: ContextVar[ExternalLatency | None] = ContextVar("external_latency", default=None)


def begin_external_latency() -> tuple[Token[ExternalLatency | None], ExternalLatency]:
    """From now on the time of this request is counted. One that it makes of the server itself has its own."""
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
