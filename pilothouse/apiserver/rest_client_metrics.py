"""The rest_client_* metrics with upstream's names: requests that this server makes as a client.

Calls of webhooks are counted here directly; `pilothouse.client` is connected by the control plane.
"""

from __future__ import annotations

from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally

UNANSWERED = "<error>"
_PREFIX = "rest_client_"
_TO = ("verb", "host")
_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_BYTES = tuple(1 << power for power in (6, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24))


def _histogram(name: str, about: str, bounds: tuple[float, ...]) -> HistogramTally:
    return HistogramTally(_PREFIX + name, f"[ALPHA] {about}", _TO, bounds=bounds, registry=REGISTRY)


class RestClientMetrics:
    """Implements `pilothouse.client.rest.metrics.RequestMetrics`."""

    def __init__(self) -> None:
        self._duration = _histogram(
            "request_duration_seconds", "Request latency in seconds. Broken down by verb, and host.", _SECONDS
        )
        self._throttled = _histogram(
            "rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            _SECONDS,
        )
        self._sent = _histogram("request_size_bytes", "Request size in bytes. Broken down by verb and host.", _BYTES)
        self._received = _histogram(
            "response_size_bytes", "Response size in bytes. Broken down by verb and host.", _BYTES
        )
        self._requests = CounterTally(
            f"{_PREFIX}requests",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
            registry=REGISTRY,
        )
        self._retries = CounterTally(
            f"{_PREFIX}request_retries",
            "[ALPHA] Number of request retries, partitioned by status code, verb, and host.",
            ("code", "verb", "host"),
            registry=REGISTRY,
        )

    def throttled(self, method: str, host: str, seconds: float) -> None:
        self._throttled.observe((method, host), seconds)

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None:
        self._requests.inc((code, method, host))
        if again:
            self._retries.inc((code, method, host))

    def sent(self, method: str, host: str, size: int) -> None:
        self._sent.observe((method, host), size)

    def received(self, method: str, host: str, size: int) -> None:
        self._received.observe((method, host), size)

    def done(self, method: str, host: str, seconds: float) -> None:
        self._duration.observe((method, host), seconds)


REST_CLIENT_METRICS = RestClientMetrics()
