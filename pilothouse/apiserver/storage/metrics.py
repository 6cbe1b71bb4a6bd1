"""Metrics of all stores, with upstream's names, which say etcd for any store.

The caller reports requests, because only the caller knows the resource of a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from prometheus_client import Gauge

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.machinery.names import GroupResource

_REQUEST = ("operation", "group", "resource")

_DURATION = HistogramTally(
    "etcd_request_duration_seconds",
    "[ALPHA] Etcd request latency in seconds for each operation and object type.",
    _REQUEST,
    bounds=(
        *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2),
        *(3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
    ),
    registry=REGISTRY,
)
_REQUESTS = CounterTally(
    "etcd_requests", "[ALPHA] Etcd request counts for each operation and object type.", _REQUEST, registry=REGISTRY
)
_ERRORS = CounterTally(
    "etcd_request_errors",
    "[ALPHA] Etcd failed request counts for each operation and object type.",
    _REQUEST,
    registry=REGISTRY,
)
_OF_RESOURCE = ("group", "resource")
_LISTS, _LIST_FETCHED, _LIST_EVALUATED, _LIST_RETURNED = (
    CounterTally(f"apiserver_storage_list{name}", f"[ALPHA] {about}", _OF_RESOURCE, registry=REGISTRY)
    for name, about in (
        ("", "Number of LIST requests served from storage"),
        ("_fetched_objects", "Number of objects read from storage in the course of serving a LIST request"),
        ("_evaluated_objects", "Number of objects tested in the course of serving a LIST request from storage"),
        ("_returned_objects", "Number of objects returned for a LIST request from storage"),
    )
)
_SIZE = Gauge(
    "apiserver_storage_size_bytes",
    "[STABLE] Size of the storage database file physically allocated in bytes.",
    ("storage_cluster_id",),
    registry=REGISTRY,
)


def count_list(resource: GroupResource, *, fetched: int, evaluated: int, returned: int) -> None:
    """Count a list answered by the store, not by a cache."""
    labels = (resource.group, resource.resource)
    _LISTS.inc(labels)
    _LIST_FETCHED.row(labels).value += fetched
    _LIST_EVALUATED.row(labels).value += evaluated
    _LIST_RETURNED.row(labels).value += returned


class RequestMetrics:
    """Metrics of one operation on one resource."""

    def __init__(self, operation: str, *, group: str, resource: str) -> None:
        self._labels = (operation, group, resource)

    def observe(self, seconds: float, *, failed: bool = False) -> None:
        _DURATION.observe(self._labels, seconds)
        _REQUESTS.inc(self._labels)
        if failed:
            _ERRORS.inc(self._labels)

    def measured(self) -> _MeasuredRequest:
        """Measure the block as one request. Negative answers such as conflicts are not failures."""
        return _MeasuredRequest(self)


class _MeasuredRequest:
    """A context manager; contextlib's would cost more than the rest of the measurement."""

    __slots__ = ("_metrics", "_start")

    def __init__(self, metrics: RequestMetrics) -> None:
        self._metrics = metrics
        self._start = time.perf_counter()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._metrics.observe(time.perf_counter() - self._start, failed=isinstance(error, Unavailable))


def report_size(cluster: str, size: Callable[[], float]) -> None:
    """Export the size of a store, read at each scrape."""
    _SIZE.labels(cluster).set_function(size)


def forget_size(cluster: str) -> None:
    with suppress(KeyError):
        _SIZE.remove(cluster)
