"""workqueue_* metrics with upstream's names and buckets.

A queue maintains plain numbers, converted to metrics at scrape time. Observation is cheap, and the values of work in
progress are exact at the scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pilothouse.client.clock import Clock

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

BUCKETS = tuple(float(f"1e{exponent}") for exponent in range(-8, 2))
_BOUNDS = [*map(str, BUCKETS), "+Inf"]

_collectors: WeakKeyDictionary[CollectorRegistry, WorkQueueCollector] = WeakKeyDictionary()


class Durations:
    """Histogram of durations in seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        return list(zip(_BOUNDS, accumulate(self.counts), strict=True))


class QueueMetrics:
    """Metrics of all queues of one name, shared as upstream."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.now
        self.adds = 0
        self.retries = 0
        self.depth = 0
        self.queued = Durations()
        self.worked = Durations()
        self._added_at: dict[Hashable, float] = {}
        self._started_at: dict[Hashable, float] = {}

    def added(self, item: Hashable) -> None:
        self.adds += 1
        self.depth += 1
        self._added_at.setdefault(item, self._now())

    def got(self, item: Hashable) -> None:
        self.depth -= 1
        now = self._started_at[item] = self._now()
        added = self._added_at.pop(item, None)
        if added is not None:
            self.queued.observe(now - added)

    def done(self, item: Hashable) -> None:
        started = self._started_at.pop(item, None)
        if started is not None:
            self.worked.observe(self._now() - started)

    def ages(self) -> list[float]:
        """Return the running time of each item in progress."""
        now = self._now()
        return [now - started for started in self._started_at.values()]


class WorkQueueCollector:
    """Exports every named queue of one registry."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueMetrics] = {}

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        yield from self._gauges()
        from prometheus_client.core import HistogramMetricFamily

        waited = HistogramMetricFamily("workqueue_queue_duration_seconds", _WAITED, labels=["name"])
        worked = HistogramMetricFamily("workqueue_work_duration_seconds", _WORKED, labels=["name"])
        for name, queue in tuple(self.queues.items()):
            waited.add_metric([name], queue.queued.buckets(), queue.queued.total)
            worked.add_metric([name], queue.worked.buckets(), queue.worked.total)
        yield from (waited, worked)

    def _counters(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        adds = CounterMetricFamily(
            "workqueue_adds", "[BETA] Total number of adds handled by workqueue", labels=["name"]
        )
        retries = CounterMetricFamily(
            "workqueue_retries", "[BETA] Total number of retries handled by workqueue", labels=["name"]
        )
        for name, queue in self.queues.items():
            adds.add_metric([name], queue.adds)
            retries.add_metric([name], queue.retries)
        yield from (adds, retries)

    def _gauges(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        depth = GaugeMetricFamily("workqueue_depth", "[BETA] Current depth of workqueue", labels=["name"])
        unfinished = GaugeMetricFamily("workqueue_unfinished_work_seconds", _UNFINISHED, labels=["name"])
        longest = GaugeMetricFamily("workqueue_longest_running_processor_seconds", _LONGEST, labels=["name"])
        for name, queue in self.queues.items():
            ages = queue.ages()
            depth.add_metric([name], queue.depth)
            unfinished.add_metric([name], sum(ages))
            longest.add_metric([name], max(ages, default=0.0))
        yield from (depth, unfinished, longest)


_UNFINISHED = (
    "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large "
    "values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this "
    "increases."
)
_LONGEST = "[BETA] How many seconds has the longest running processor for workqueue been running."
_WAITED = "[BETA] How long in seconds an item stays in workqueue before being requested."
_WORKED = "[BETA] How long in seconds processing an item from workqueue takes."


def metrics_for(name: str, registry: CollectorRegistry | None, clock: Clock) -> QueueMetrics | None:
    """Return the metrics of queues with this name; None for an unnamed queue."""
    if not name:
        return None
    if registry is None:
        from prometheus_client import REGISTRY

        registry = REGISTRY
    collector = _collectors.get(registry)
    if collector is None:
        collector = _collectors[registry] = WorkQueueCollector()
        registry.register(collector)
    return collector.queues.setdefault(name, QueueMetrics(clock))
