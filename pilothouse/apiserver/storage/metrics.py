"""Metrics of every store, under upstream's names, which say etcd whatever the store is.

The caller of a store reports its requests, because only it knows the resource behind a key.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.metrics import REGISTRY

_REQUEST = ("operation", "group", "resource")

_DURATION = Histogram(
    "etcd_request_duration_seconds",
    "Store request latency in seconds for each operation and resource.",
    _REQUEST,
    buckets=(
        *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2),
        *(3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
    ),
    registry=REGISTRY,
)
_REQUESTS = Counter("etcd_requests", "Store requests for each operation and resource.", _REQUEST, registry=REGISTRY)
_ERRORS = Counter(
    "etcd_request_errors", "Failed store requests for each operation and resource.", _REQUEST, registry=REGISTRY
)
_SIZE = Gauge(
    "apiserver_storage_size_bytes",
    "Size of the storage database file physically allocated in bytes.",
    ("storage_cluster_id",),
    registry=REGISTRY,
)


class RequestMetrics:
    """Counts one operation on one resource. Made once and kept: finding the series is what costs."""

    def __init__(self, operation: str, *, group: str, resource: str) -> None:
        labels = (operation, group, resource)
        self._duration = _DURATION.labels(*labels)
        self._requests = _REQUESTS.labels(*labels)
        self._errors = _ERRORS.labels(*labels)

    def observe(self, seconds: float, *, failed: bool = False) -> None:
        self._duration.observe(seconds)
        self._requests.inc()
        if failed:
            self._errors.inc()


def report_size(cluster: str, size: Callable[[], float]) -> None:
    """Shows the size of a store from now on, asked for anew at each scrape."""
    _SIZE.labels(cluster).set_function(size)


def forget_size(cluster: str) -> None:
    with suppress(KeyError):
        _SIZE.remove(cluster)
