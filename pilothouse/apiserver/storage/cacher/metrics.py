"""The metrics of the watch cache, under upstream's names. A cache binds its labels once."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.machinery.names import GroupResource

_LABELS = ("group", "resource")
_WAITS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3)
_REVISION_DIGITS = 10**15  # a float is exact up to here


def _counter(name: str, documentation: str, *more: str) -> Counter:
    return Counter(name, documentation, (*_LABELS, *more), registry=REGISTRY)


LISTS = _counter("apiserver_cache_list_total", "LIST requests served from the watch cache.", "index")
LIST_FETCHED = _counter(
    "apiserver_cache_list_fetched_objects_total", "Objects read from the watch cache to serve LIST requests.", "index"
)
LIST_RETURNED = _counter(
    "apiserver_cache_list_returned_objects_total", "Objects returned by LISTs from the watch cache."
)
INIT_EVENTS = _counter("apiserver_init_events_total", "Events sent to watchers before the live ones.")
TERMINATED = _counter("apiserver_terminated_watchers_total", "Watchers closed because they were too slow.")
RECEIVED = _counter("apiserver_watch_cache_events_received_total", "Events that the watch cache received.")
DISPATCHED = _counter("apiserver_watch_cache_events_dispatched_total", "Events that the watch cache dispatched.")
INITIALIZATIONS = _counter("apiserver_watch_cache_initializations_total", "Times that the watch cache was filled.")
CONSISTENT_READS = _counter(
    "apiserver_watch_cache_consistent_read_total", "Consistent LISTs from the watch cache.", "success", "fallback"
)
CAPACITY_INCREASES = _counter("watch_cache_capacity_increase_total", "Times that the window of changes was widened.")
CAPACITY_DECREASES = _counter("watch_cache_capacity_decrease_total", "Times that the window of changes was narrowed.")
CAPACITY = Gauge("watch_cache_capacity", "Changes that the window can hold.", _LABELS, registry=REGISTRY)
OBJECTS = Gauge("apiserver_storage_objects", "Objects stored, as the watch cache knows.", _LABELS, registry=REGISTRY)
RESOURCE_VERSION = Gauge(
    "apiserver_watch_cache_resource_version",
    "Revision that the watch cache has reached, its 15 least significant digits.",
    _LABELS,
    registry=REGISTRY,
)
READ_WAIT = Histogram(
    "apiserver_watch_cache_read_wait_seconds",
    "Time that reads waited for the watch cache to become fresh; reads that did not wait are left out.",
    _LABELS,
    buckets=_WAITS,
    registry=REGISTRY,
)


class CacheMetrics:
    """The metrics of one cache. Looking a label up costs more than counting, so each is looked up once."""

    def __init__(self, resource: GroupResource) -> None:
        labels = (resource.group, resource.resource)
        self.init_events = INIT_EVENTS.labels(*labels)
        self.terminated = TERMINATED.labels(*labels)
        self.received = RECEIVED.labels(*labels)
        self.dispatched = DISPATCHED.labels(*labels)
        self.initializations = INITIALIZATIONS.labels(*labels)
        self.capacity = CAPACITY.labels(*labels)
        self.read_wait = READ_WAIT.labels(*labels)
        self._lists = LISTS.labels(*labels, "")
        self._fetched = LIST_FETCHED.labels(*labels, "")
        self._returned = LIST_RETURNED.labels(*labels)
        self._from_cache = CONSISTENT_READS.labels(*labels, "true", "false")
        self._from_store = CONSISTENT_READS.labels(*labels, "true", "true")
        self._increases = CAPACITY_INCREASES.labels(*labels)
        self._decreases = CAPACITY_DECREASES.labels(*labels)
        self._revision = RESOURCE_VERSION.labels(*labels)

        self._objects = OBJECTS.labels(*labels)

    def count_objects(self, count: Callable[[], float]) -> None:
        """Shows how many there are from now on, counted anew at each scrape."""
        self._objects.set_function(count)

    def listed(self, *, fetched: int, returned: int) -> None:
        self._lists.inc()
        self._fetched.inc(fetched)
        self._returned.inc(returned)

    def consistent_list(self, *, fallback: bool) -> None:
        (self._from_store if fallback else self._from_cache).inc()

    def resized(self, before: int, after: int) -> None:
        (self._increases if after > before else self._decreases).inc()
        self.capacity.set(after)

    def reached(self, revision: int) -> None:
        self._revision.set(revision % _REVISION_DIGITS)
