"""Request metrics with upstream's names."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally

_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_DURATIONS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_AUTH_DURATIONS = tuple(0.001 * 2**power for power in range(15))
_SIZES = (1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)

REQUESTS = CounterTally(
    "apiserver_request",
    "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, "
    "resource, scope, component, and HTTP response code.",
    (*_LABELS, "dry_run", "code"),
    registry=REGISTRY,
)
DURATION = HistogramTally(
    "apiserver_request_duration_seconds",
    "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, "
    "resource, subresource, scope and component.",
    (*_LABELS, "dry_run"),
    bounds=_DURATIONS,
    registry=REGISTRY,
)
SLI_DURATION = HistogramTally(
    "apiserver_request_sli_duration_seconds",
    "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait "
    "times) in seconds for each verb, group, version, resource, subresource, scope and component.",
    _LABELS,
    bounds=(0.05, *_DURATIONS[3:]),
    registry=REGISTRY,
)
RESPONSE_SIZES = HistogramTally(
    "apiserver_response_sizes",
    "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, "
    "scope and component.",
    _LABELS,
    bounds=_SIZES,
    registry=REGISTRY,
)
SELF_REQUESTS = CounterTally(
    "apiserver_selfrequest",
    "[ALPHA] Counter of apiserver self-requests broken out for each verb, API resource and subresource.",
    ("verb", "group", "resource", "subresource"),
    registry=REGISTRY,
)
FILTER_DURATION = HistogramTally(
    "apiserver_request_filter_duration_seconds",
    "[ALPHA] Request filter latency distribution in seconds, for each filter type",
    ("filter",),
    bounds=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0),
    registry=REGISTRY,
)
LONG_RUNNING = Gauge(
    "apiserver_longrunning_requests",
    "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, "
    "resource, scope and component. Not all requests are tracked this way.",
    _LABELS,
    registry=REGISTRY,
)
CURRENT_INFLIGHT = Gauge(
    "apiserver_current_inflight_requests",
    "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind "
    "in last second.",
    ("request_kind",),
    registry=REGISTRY,
)
DROPPED = Counter(
    "apiserver_dropped_requests_total", "Requests turned away for being too many.", ("request_kind",), registry=REGISTRY
)
AUTHENTICATION_ATTEMPTS = CounterTally(
    "authentication_attempts", "[ALPHA] Counter of authenticated attempts.", ("result",), registry=REGISTRY, total=False
)
AUTHENTICATION_DURATION = HistogramTally(
    "authentication_duration_seconds",
    "[ALPHA] Authentication duration in seconds broken out by result.",
    ("result",),
    bounds=_AUTH_DURATIONS,
    registry=REGISTRY,
)
AUTHENTICATED_USER_REQUESTS = CounterTally(
    "authenticated_user_requests",
    "[ALPHA] Counter of authenticated requests broken out by username.",
    ("username",),
    registry=REGISTRY,
    total=False,
)
AUTHORIZATION_DURATION = HistogramTally(
    "authorization_duration_seconds",
    "[ALPHA] Authorization duration in seconds broken out by result.",
    ("result",),
    bounds=_AUTH_DURATIONS,
    registry=REGISTRY,
)
AUTHORIZATION_ATTEMPTS = CounterTally(
    "authorization_attempts",
    "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', "
    "'denied', 'no-opinion' or 'error'.",
    ("result",),
    registry=REGISTRY,
)
