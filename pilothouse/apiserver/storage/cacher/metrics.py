"""Metrics of the watch cache, with upstream's names. A cache binds its labels once."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Sized
from contextlib import suppress
from functools import cached_property
from typing import Protocol, TypeAlias
from weakref import ref

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.storage.metrics import count_list
from pilothouse.apiserver.tallies import REGISTRY, Count, CounterTally
from pilothouse.machinery.names import GroupResource

_Series: TypeAlias = Counter | Gauge | Histogram

_LABELS = ("group", "resource")
_WAITS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3)
_REVISION_DIGITS = 10**15  # floats are exact up to here


def _counter(name: str, documentation: str, *more: str) -> Counter:
    return Counter(name, documentation, (*_LABELS, *more), registry=REGISTRY)


def _tally(name: str, documentation: str) -> CounterTally:
    """Return a counter for hot paths."""
    return CounterTally(name.removesuffix("_total"), documentation, _LABELS, registry=REGISTRY)


LISTS = _counter("apiserver_cache_list_total", "[ALPHA] Number of LIST requests served from watch cache", "index")
LIST_FETCHED = _counter(
    "apiserver_cache_list_fetched_objects_total",
    "[ALPHA] Number of objects read from watch cache in the course of serving a LIST request",
    "index",
)
LIST_RETURNED = _counter(
    "apiserver_cache_list_returned_objects_total",
    "[ALPHA] Number of objects returned for a LIST request from watch cache",
)
INIT_EVENTS = _counter(
    "apiserver_init_events_total", "[ALPHA] Counter of init events processed in watch cache broken by resource type."
)
TERMINATED = _counter(
    "apiserver_terminated_watchers_total",
    "[ALPHA] Counter of watchers closed due to unresponsiveness broken by resource type.",
)
RECEIVED = _tally(
    "apiserver_watch_cache_events_received_total",
    "[ALPHA] Counter of events received in watch cache broken by resource type.",
)
DISPATCHED = _tally(
    "apiserver_watch_cache_events_dispatched_total",
    "[ALPHA] Counter of events dispatched in watch cache broken by resource type.",
)
INITIALIZATIONS = _counter(
    "apiserver_watch_cache_initializations_total",
    "[ALPHA] Counter of watch cache initializations broken by resource type.",
)
CONSISTENT_READS = _counter(
    "apiserver_watch_cache_consistent_read_total",
    "[ALPHA] Counter for consistent reads from cache.",
    "success",
    "fallback",
)
CAPACITY_INCREASES = _counter(
    "watch_cache_capacity_increase_total",
    "[ALPHA] Total number of watch cache capacity increase events broken by resource type.",
)
CAPACITY_DECREASES = _counter(
    "watch_cache_capacity_decrease_total",
    "[ALPHA] Total number of watch cache capacity decrease events broken by resource type.",
)
CAPACITY = Gauge(
    "watch_cache_capacity", "[ALPHA] Total capacity of watch cache broken by resource type.", _LABELS, registry=REGISTRY
)
OBJECTS = Gauge(
    "apiserver_storage_objects",
    "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] "
    "Number of stored objects at the time of last check split by kind. In case of a fetching error, the "
    "value will be -1.",
    ("resource",),
    registry=REGISTRY,
)
RESOURCE_OBJECTS = Gauge(
    "apiserver_resource_objects",
    "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the "
    "value will be -1.",
    _LABELS,
    registry=REGISTRY,
)
SIZE_ESTIMATE = Gauge(
    "apiserver_resource_size_estimate_bytes",
    "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of "
    "serialized objects. In case of a fetching error, the value will be -1.",
    _LABELS,
    registry=REGISTRY,
)
STORAGE_EVENTS = _tally(
    "apiserver_storage_events_received_total", "[BETA] Number of etcd events received split by kind."
)
RESOURCE_VERSION = Gauge(
    "apiserver_watch_cache_resource_version",
    "[ALPHA] Current resource version of watch cache broken by resource type. This is truncated to the 15"
    " least significant digits.",
    _LABELS,
    registry=REGISTRY,
)
READ_WAIT = Histogram(
    "apiserver_watch_cache_read_wait_seconds",
    "[ALPHA] Histogram of time spent waiting for a watch cache to become fresh.",
    _LABELS,
    buckets=_WAITS,
    registry=REGISTRY,
)


_BY_RESOURCE: dict[_Series, tuple[tuple[str, ...], ...]] = {
    LISTS: (("",),),
    LIST_FETCHED: (("",),),
    CONSISTENT_READS: (("true", "false"), ("true", "true")),
    **dict.fromkeys((LIST_RETURNED, INIT_EVENTS, TERMINATED, INITIALIZATIONS, CAPACITY_INCREASES), ((),)),
    **dict.fromkeys(
        (CAPACITY_DECREASES, CAPACITY, RESOURCE_OBJECTS, SIZE_ESTIMATE, RESOURCE_VERSION, READ_WAIT), ((),)
    ),
}
"""Metrics with series by group and resource → their further labels."""

_CACHES: Multiset[GroupResource] = Multiset()
"""Caches per resource; a new cache may start before the old one has ended."""


class _Objects(Sized, Protocol):
    size: int


def _remove(metric: _Series, labels: tuple[str, ...]) -> None:
    with suppress(KeyError):  # no series yet
        metric.remove(*labels)


class CacheMetrics:
    """Metrics of one cache. Label lookups cost more than counting, so each lookup happens once, on first use."""

    def __init__(self, resource: GroupResource) -> None:
        self._resource = resource
        self._labels = (resource.group, resource.resource)
        _CACHES[resource] += 1

    def release(self) -> None:
        """Drop the series of the resource with its last cache; custom resources come and go."""
        _CACHES[self._resource] -= 1
        if _CACHES[self._resource] > 0:
            return
        del _CACHES[self._resource]
        for metric, more in _BY_RESOURCE.items():
            for labels in more:
                _remove(metric, (*self._labels, *labels))
        _remove(OBJECTS, (str(self._resource),))
        for tally in (RECEIVED, DISPATCHED, STORAGE_EVENTS):
            tally.forget(self._labels)

    @cached_property
    def init_events(self) -> Counter:
        return INIT_EVENTS.labels(*self._labels)

    @cached_property
    def terminated(self) -> Counter:
        return TERMINATED.labels(*self._labels)

    @cached_property
    def received(self) -> Count:
        return RECEIVED.row(self._labels)

    @cached_property
    def stored_events(self) -> Count:
        return STORAGE_EVENTS.row(self._labels)

    @cached_property
    def dispatched(self) -> Count:
        return DISPATCHED.row(self._labels)

    @cached_property
    def initializations(self) -> Counter:
        return INITIALIZATIONS.labels(*self._labels)

    @cached_property
    def capacity(self) -> Gauge:
        return CAPACITY.labels(*self._labels)

    @cached_property
    def read_wait(self) -> Histogram:
        return READ_WAIT.labels(*self._labels)

    @cached_property
    def _lists(self) -> Counter:
        return LISTS.labels(*self._labels, "")

    @cached_property
    def _fetched(self) -> Counter:
        return LIST_FETCHED.labels(*self._labels, "")

    @cached_property
    def _returned(self) -> Counter:
        return LIST_RETURNED.labels(*self._labels)

    @cached_property
    def _from_cache(self) -> Counter:
        return CONSISTENT_READS.labels(*self._labels, "true", "false")

    @cached_property
    def _revision(self) -> Gauge:
        return RESOURCE_VERSION.labels(*self._labels)

    def count_objects(self, objects: _Objects) -> None:
        """Export number and size of the objects at each scrape, without keeping them alive."""
        known = ref(objects)
        for gauge in (OBJECTS.labels(str(self._resource)), RESOURCE_OBJECTS.labels(*self._labels)):
            gauge.set_function(lambda: len(known() or ()))
        SIZE_ESTIMATE.labels(*self._labels).set_function(lambda: found.size if (found := known()) else 0)

    def listed(self, *, fetched: int, returned: int) -> None:
        self._lists.inc()
        self._fetched.inc(fetched)
        self._returned.inc(returned)

    def listed_from_storage(self, *, fetched: int, evaluated: int, returned: int) -> None:
        count_list(self._resource, fetched=fetched, evaluated=evaluated, returned=returned)

    def consistent_list(self, *, fallback: bool) -> None:
        if self._resource in _CACHES:  # a list may outlive its cache
            (CONSISTENT_READS.labels(*self._labels, "true", "true") if fallback else self._from_cache).inc()

    def resized(self, before: int, after: int) -> None:
        (CAPACITY_INCREASES if after > before else CAPACITY_DECREASES).labels(*self._labels).inc()
        self.capacity.set(after)

    def reached(self, revision: int) -> None:
        self._revision.set(revision % _REVISION_DIGITS)
