"""Who counts the requests of all clients: nobody, until a program says who does."""

from __future__ import annotations

from typing import Protocol


class RequestMetrics(Protocol):
    """Is told of each request, by its method and the host it goes to. None of these may raise."""

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """An attempt has waited so long for the client's own rate limit."""

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None:
        """An attempt was answered; `code` is `<error>` where it was not. `again`: it was not the request's first."""

    def sent(self, method: str, host: str, size: int) -> None:
        """An attempt had a body of this size. Streams are not told of, here and below."""

    def received(self, method: str, host: str, size: int) -> None:
        """An answer had a body of this size."""

    def done(self, method: str, host: str, seconds: float) -> None:
        """A request with all its attempts has taken so long."""


class _Uncounted:
    def throttled(self, method: str, host: str, seconds: float) -> None: ...

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None: ...

    def sent(self, method: str, host: str, size: int) -> None: ...

    def received(self, method: str, host: str, size: int) -> None: ...

    def done(self, method: str, host: str, seconds: float) -> None: ...


_metrics: RequestMetrics = _Uncounted()


def request_metrics() -> RequestMetrics:
    return _metrics


def count_requests_in(metrics: RequestMetrics) -> None:
    """All clients of this process tell it of their requests from now on."""
    global _metrics
    _metrics = metrics
