"""Counters and histograms of the request path: plain numbers that become metrics when scraped.

Counters of prometheus_client take a lock and a lookup per increment; these cost a fifth
(docs/decisions/request-metrics.md). Only the event loop updates them; a thread reads them for a scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Sized
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.registry import Collector

REGISTRY = CollectorRegistry()


Labels: TypeAlias = tuple[str, ...]

# Label values can be names of objects, which vary without bound: excess rows are counted together.
_MOST_ROWS = 10_000
_MOST_CHARACTERS = 1024  # maximum length of the labels of a row
_OTHER = "other"


def _told_apart(rows: Sized, labels: Labels) -> Labels:
    """Return the labels of a new row, or the labels of the overflow row."""
    if len(rows) < _MOST_ROWS and sum(map(len, labels)) <= _MOST_CHARACTERS:
        return labels
    return (_OTHER,) * len(labels)


class Count:
    """The value of a counter for one set of labels."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class CounterTally(Collector):
    def __init__(
        self, name: str, help: str, labels: Sequence[str], *, registry: CollectorRegistry, total: bool = True
    ) -> None:
        """`total`: whether the exposed name ends with `_total`. False for some old metrics."""
        self._family = (name, help)
        self._labels = tuple(labels)
        self._total = total
        self._rows: dict[Labels, Count] = {} if self._labels else {(): Count()}
        registry.register(self)

    def inc(self, labels: Labels = ()) -> None:
        row = self._rows.get(labels) or self.row(labels)
        row.value += 1

    def row(self, labels: Labels) -> Count:
        """Return the row, for callers that increment the same labels often."""
        if labels not in self._rows:
            labels = _told_apart(self._rows, labels)
        return self._rows.setdefault(labels, Count())

    def forget(self, labels: Labels) -> None:
        """Remove the row."""
        self._rows.pop(labels, None)

    def describe(self) -> Iterator[Metric]:
        yield self._empty()

    def collect(self) -> Iterator[Metric]:
        family = self._empty()
        for labels, count in list(self._rows.items()):  # rows may be added concurrently
            family.add_metric(labels, count.value)
        yield family

    def _empty(self) -> CounterMetricFamily | UnknownMetricFamily:
        """Return an empty family. The format has no counters without `_total`."""
        kind = CounterMetricFamily if self._total else UnknownMetricFamily
        return kind(*self._family, labels=self._labels)


class HistogramRow:
    """The observations of a histogram for one set of labels."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class HistogramTally(Collector):
    def __init__(
        self, name: str, help: str, labels: Sequence[str], *, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._family = (name, help)
        self.labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._rows: dict[Labels, HistogramRow] = {} if self.labels else {(): HistogramRow(self._bounds)}
        registry.register(self)

    def observe(self, labels: Labels, value: float) -> None:
        row = self._rows.get(labels) or self.row(labels)
        row.counts[bisect_left(self._bounds, value)] += 1
        row.sum += value

    def row(self, labels: Labels) -> HistogramRow:
        """Return the row, for callers that observe the same labels often."""
        if labels not in self._rows:
            labels = _told_apart(self._rows, labels)
        return self._rows.setdefault(labels, HistogramRow(self._bounds))

    def describe(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(*self._family, labels=self.labels)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._family, labels=self.labels)
        for labels, row in list(self._rows.items()):  # rows may be added concurrently
            if any(row.counts) or not self.labels:
                names = [*(f"{bound:.15g}" for bound in self._bounds), "+Inf"]
                total, buckets = 0, []
                for name, count in zip(names, row.counts, strict=True):
                    total += count
                    buckets.append((name, float(total)))
                family.add_metric(labels, buckets, row.sum)
        yield family

    def totals(self) -> Iterator[tuple[Labels, int, float]]:
        """Yield (labels, number of observations, sum) of each row."""
        for labels, row in list(self._rows.items()):  # rows may be added concurrently
            yield labels, sum(row.counts), row.sum


class SummaryTally(Collector):
    """A summary without quantiles, derived from a histogram."""

    def __init__(self, name: str, help: str, histogram: HistogramTally, *, registry: CollectorRegistry) -> None:
        self._family = (name, help)
        self._histogram = histogram
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        yield SummaryMetricFamily(*self._family, labels=self._histogram.labels)

    def collect(self) -> Iterator[Metric]:
        family = SummaryMetricFamily(*self._family, labels=self._histogram.labels)
        for labels, count, total in self._histogram.totals():
            family.add_metric(labels, count, total)
        yield family
