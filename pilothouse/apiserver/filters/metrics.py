"""The metrics of requests, under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.metrics import REGISTRY

_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_DURATIONS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_SIZES = (1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)

REQUESTS = Counter(
    "apiserver_request_total",
    "Requests answered, by verb, resource, scope and code.",
    ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"),
    registry=REGISTRY,
)
DURATION = Histogram(
    "apiserver_request_duration_seconds",
    "Seconds until a request was answered; for watches, until the stream began.",
    ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"),
    buckets=_DURATIONS,
    registry=REGISTRY,
)
RESPONSE_SIZES = Histogram("apiserver_response_sizes", "Bytes of answers.", _LABELS, buckets=_SIZES, registry=REGISTRY)
LONG_RUNNING = Gauge("apiserver_longrunning_requests", "Long-running requests under way.", _LABELS, registry=REGISTRY)
CURRENT_INFLIGHT = Gauge(
    "apiserver_current_inflight_requests", "Requests under way, by kind.", ("request_kind",), registry=REGISTRY
)
DROPPED = Counter(
    "apiserver_dropped_requests_total", "Requests turned away for being too many.", ("request_kind",), registry=REGISTRY
)
AUTHENTICATED = Counter(
    "authenticated_user_requests", "Requests that were authenticated, by user.", ("username",), registry=REGISTRY
)
AUTHENTICATION_ATTEMPTS = Counter(
    "authentication_attempts", "Attempts to authenticate, by result.", ("result",), registry=REGISTRY
)
AUTHORIZATION_ATTEMPTS = Counter(
    "apiserver_authorization_decisions_total",
    "Decisions of the authorizers.",
    ("decision",),
    registry=REGISTRY,
)
