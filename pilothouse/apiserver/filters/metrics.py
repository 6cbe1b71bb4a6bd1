"""The metrics of requests, under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_DURATIONS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_AUTH_DURATIONS = tuple(0.001 * 2**power for power in range(15))
_SIZES = (1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)

REQUESTS = CounterTally(
    "apiserver_request",
    "Requests answered, by verb, resource, scope and code.",
    (*_LABELS, "dry_run", "code"),
    registry=REGISTRY,
)
DURATION = HistogramTally(
    "apiserver_request_duration_seconds",
    "Seconds until a request was answered; for watches, until the stream began.",
    (*_LABELS, "dry_run"),
    bounds=_DURATIONS,
    registry=REGISTRY,
)
RESPONSE_SIZES = HistogramTally(
    "apiserver_response_sizes", "Bytes of answers.", _LABELS, bounds=_SIZES, registry=REGISTRY
)
LONG_RUNNING = Gauge("apiserver_longrunning_requests", "Long-running requests under way.", _LABELS, registry=REGISTRY)
CURRENT_INFLIGHT = Gauge(
    "apiserver_current_inflight_requests", "Requests under way, by kind.", ("request_kind",), registry=REGISTRY
)
DROPPED = Counter(
    "apiserver_dropped_requests_total", "Requests turned away for being too many.", ("request_kind",), registry=REGISTRY
)
AUTHENTICATION_ATTEMPTS = CounterTally(
    "authentication_attempts", "Attempts to authenticate, by result.", ("result",), registry=REGISTRY, total=False
)
AUTHENTICATION_DURATION = HistogramTally(
    "authentication_duration_seconds",
    "Seconds that it took to find out who asks, by result.",
    ("result",),
    bounds=_AUTH_DURATIONS,
    registry=REGISTRY,
)
AUTHENTICATED_USER_REQUESTS = CounterTally(
    "authenticated_user_requests",
    "Requests of users, by a few kinds of users.",
    ("username",),
    registry=REGISTRY,
    total=False,
)
AUTHORIZATION_DURATION = HistogramTally(
    "authorization_duration_seconds",
    "Seconds that it took to decide whether a request may be made, by result.",
    ("result",),
    bounds=_AUTH_DURATIONS,
    registry=REGISTRY,
)
AUTHORIZATION_ATTEMPTS = CounterTally(
    "authorization_attempts", "Decisions of the authorizers.", ("result",), registry=REGISTRY
)
