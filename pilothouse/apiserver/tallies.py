"""Counters and histograms for the way of every request: plain numbers that become metrics when they are scraped.

prometheus_client's own counters take a lock and a look-up each time; these cost a fifth of that
(docs/decisions/request-metrics.md). All of them are counted on the event loop only; a thread reads them when they are
scraped.
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

Labels: TypeAlias = tuple[str, ...]

# Label values can be names of objects, which come and go: what is too much is counted, but not told apart.
_MOST_ROWS = 10_000
_MOST_CHARACTERS = 1024  # of all labels of a row
_OTHER = "other"


def _told_apart(rows: Sized, labels: Labels) -> Labels:
    """The labels for a new row, or those of the row for all that is too much."""
    if len(rows) < _MOST_ROWS and sum(map(len, labels)) <= _MOST_CHARACTERS:
        return labels
    return (_OTHER,) * len(labels)


class Count:
    """The count of a counter under one set of labels."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class CounterTally(Collector):
    def __init__(
        self, name: str, help: str, labels: Sequence[str], *, registry: CollectorRegistry, total: bool = True
    ) -> None:
        """`total`: whether the name is shown with `_total` behind it, as all but some old ones are."""
        self._family = (name, help)
        self._labels = tuple(labels)
        self._total = total
        self._rows: dict[Labels, Count] = {} if self._labels else {(): Count()}
        registry.register(self)

    def inc(self, labels: Labels = ()) -> None:
        row = self._rows.get(labels) or self.row(labels)
        row.value += 1

    def row(self, labels: Labels) -> Count:
        """For whoever counts under the same labels often, and wants no look-up each time."""
        if labels not in self._rows:
            labels = _told_apart(self._rows, labels)
        return self._rows.setdefault(labels, Count())

    def forget(self, labels: Labels) -> None:
        """Show the row no longer."""
        self._rows.pop(labels, None)

    def describe(self) -> Iterator[Metric]:
        yield self._empty()

    def collect(self) -> Iterator[Metric]:
        family = self._empty()
        for labels, count in list(self._rows.items()):  # rows are added meanwhile
            family.add_metric(labels, count.value)
        yield family

    def _empty(self) -> CounterMetricFamily | UnknownMetricFamily:
        """The format knows counters with `_total` only."""
        kind = CounterMetricFamily if self._total else UnknownMetricFamily
        return kind(*self._family, labels=self._labels)


class HistogramRow:
    """The observations of a histogram under one set of labels."""

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
        """For whoever observes under the same labels often, and wants no look-up each time."""
        if labels not in self._rows:
            labels = _told_apart(self._rows, labels)
        return self._rows.setdefault(labels, HistogramRow(self._bounds))

    def describe(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(*self._family, labels=self.labels)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._family, labels=self.labels)
        for labels, row in list(self._rows.items()):  # rows are added meanwhile
            if any(row.counts) or not self.labels:
                family.add_metric(labels, self._buckets(row), row.sum)
        yield family

    def _buckets(self, row: HistogramRow) -> list[tuple[str, float]]:
        """Each bucket counts all that is not above its bound."""
        names = [*(f"{bound:.15g}" for bound in self._bounds), "+Inf"]
        total, buckets = 0, []
        for name, count in zip(names, row.counts, strict=True):
            total += count
            buckets.append((name, float(total)))
        return buckets

    def totals(self) -> Iterator[tuple[Labels, int, float]]:
        """Return the labels of each row, the number of observations, and their sum."""
        for labels, row in list(self._rows.items()):  # rows are added meanwhile
            yield labels, sum(row.counts), row.sum


class SummaryTally(Collector):
    """A summary without quantiles, which has nothing to say that its histogram does not know."""

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
