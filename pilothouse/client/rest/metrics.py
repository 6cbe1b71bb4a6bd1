"""Metrics of all clients in the process; disabled until a program installs a RequestMetrics."""

from __future__ import annotations

from typing import Protocol


class RequestMetrics(Protocol):
    """Receiver of request measurements, labelled by method and host. Methods must not raise."""

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """Record the time an attempt waited for the client-side rate limit."""

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None:
        """Record the response code of an attempt (`<error>` without response). `again`: whether the attempt is a
        retry."""

    def sent(self, method: str, host: str, size: int) -> None:
        """Record the body size of an attempt. Streams are not recorded, here and below."""

    def received(self, method: str, host: str, size: int) -> None:
        """Record the body size of a response."""

    def done(self, method: str, host: str, seconds: float) -> None:
        """Record the duration of a request, including all attempts."""


class _NoMetrics:
    def throttled(self, method: str, host: str, seconds: float) -> None: ...

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None: ...

    def sent(self, method: str, host: str, size: int) -> None: ...

    def received(self, method: str, host: str, size: int) -> None: ...

    def done(self, method: str, host: str, seconds: float) -> None: ...


_metrics: RequestMetrics = _NoMetrics()


def request_metrics() -> RequestMetrics:
    return _metrics


def count_requests_in(metrics: RequestMetrics) -> None:
    """Install the receiver for all clients of this process."""
    global _metrics
    _metrics = metrics
