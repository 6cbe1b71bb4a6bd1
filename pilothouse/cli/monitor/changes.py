"""The arithmetic of two looks at the same server: by how much counters have grown, and how histograms are spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from pilothouse.cli.monitor.scrape import Labels, Scrape
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What is counted under one name: how often a second, and how long half of it takes, and all but a hundredth."""

    name: str
    rate: float
    median: float | None = None
    p99: float | None = None
    errors: float = 0.0


class Changes:
    """From the look `before` to the look `after`."""

    def __init__(self, before: Scrape, after: Scrape) -> None:
        self._before, self._after = before, after
        self._seconds = max(after.at - before.at, 1e-9)

    def timed(self, name: str, key: Callable[[Labels], str], only: Callable[[Labels], bool] = bool) -> list[Row]:
        """Return a histogram's rates and quantiles by `key`, most frequent first; what did not happen is left out."""
        buckets: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, increase in self._increases(f"{name}_bucket"):
            if only(labels):
                buckets[key(labels)][float(labels["le"])] += increase
        rows = [_timed_row(group, sorted(counts.items()), self._seconds) for group, counts in buckets.items()]
        return sorted((row for row in rows if row.rate), key=lambda row: (-row.rate, row.name))

    def rates(self, name: str, key: Callable[[Labels], str], only: Callable[[Labels], bool] = bool) -> dict[str, float]:
        """Return by how much a counter has grown a second, by `key`."""
        rates: dict[str, float] = defaultdict(float)
        for labels, increase in self._increases(name):
            if only(labels):
                rates[key(labels)] += increase / self._seconds
        return rates

    def rate(self, name: str) -> float:
        """Return by how much a counter has grown a second, over all its labels."""
        return sum(increase for _, increase in self._increases(name)) / self._seconds

    def mean(self, name: str) -> float | None:
        """Return the mean of what a histogram has counted; None if that is nothing."""
        count = sum(increase for _, increase in self._increases(f"{name}_count"))
        return sum(increase for _, increase in self._increases(f"{name}_sum")) / count if count else None

    def _increases(self, name: str) -> Iterable[tuple[Labels, float]]:
        """Return by how much each counter has grown. One that is less than before began anew, at zero."""
        before = {frozenset(labels.items()): value for labels, value in self._before.of(name)}
        for labels, value in self._after.of(name):
            known = before.get(frozenset(labels.items()), 0.0)
            yield labels, value - known if value >= known else value

    def now_by(self, name: str, key: Callable[[Labels], str], **only: str) -> dict[str, float]:
        """Return how a gauge stands at the second look, by `key`, of those with these labels."""
        values: dict[str, float] = defaultdict(float)
        for labels, value in self._after.of(name):
            if all(labels.get(label) == wanted for label, wanted in only.items()):
                values[key(labels)] += value
        return values


def _timed_row(name: str, counts: list[tuple[float, float]], seconds: float) -> Row:
    return Row(name, counts[-1][1] / seconds, quantile(counts, 0.5), quantile(counts, 0.99))


def quantile(counts: list[tuple[float, float]], of: float) -> float | None:
    """Return the value below which that part lies, as Prometheus' histogram_quantile does: between the bounds of a
    bucket in proportion, and the last finite bound where it lies above all. None if nothing was counted.

    `counts`: upper bounds with how many lie below each, in order, the last one infinite.
    """
    wanted = counts[-1][1] * of
    lower, below = 0.0, 0.0
    for bound, count in counts:
        if count >= wanted and count > below:
            return lower if bound == float("inf") else lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return None
