"""Figures of `pilothouse top`: rates between two scrapes, and the state at the second scrape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from pilothouse.cli.monitor.scrape import Labels, Scrape
from pilothouse.machinery.dataclass import dataclass

_LONG_RUNNING = frozenset({"WATCH", "CONNECT", "WATCHLIST", "PROXY"})


@dataclass(frozen=True, slots=True)
class Level:
    """A priority level: executing and waiting requests, and its seats."""

    name: str
    executing: float
    waiting: float
    seats: float


@dataclass(frozen=True, slots=True)
class Process:
    name: str
    processor: float
    """Cores in use."""
    memory: float


@dataclass(frozen=True, slots=True)
class Figures:
    version: str
    uptime: float
    revision: int
    in_flight: float
    offloaded: tuple[float, float]
    """(running, waiting) offloaded jobs."""
    restarts: float
    whole: Process
    workers: list[Process]
    verbs: list[Row]
    resources: list[Row]
    slowest: list[dict[str, Any]] | None
    watchers: list[tuple[str, float]]
    watch_events: float
    levels: list[Level]
    queues: list[tuple[str, float, float]]
    """(name, depth, additions per second)."""
    objects: list[tuple[str, float]]
    store: list[Row]
    writes_of_a_commit: float | None


class Between:
    """Computes figures from two scrapes of a server, the older first. `now`: wall clock at the second scrape."""

    def __init__(self, before: Scrape, after: Scrape, now: float) -> None:
        self._after, self._now = after, now
        self._changes = Changes(before, after)

    def figures(self) -> Figures:
        return Figures(
            version=self._version(),
            uptime=self._now
            - max((value for _, value in self._after.of("process_start_time_seconds")), default=self._now),
            revision=int(
                max((value for _, value in self._after.of("apiserver_watch_cache_resource_version")), default=0)
            ),
            in_flight=self._after.total("apiserver_current_inflight_requests"),
            offloaded=(
                self._after.total("pilothouse_offload_running"),
                self._after.total("pilothouse_offload_waiting"),
            ),
            restarts=self._after.total("pilothouse_worker_restarts_total"),
            whole=Process(
                "all",
                self._changes.rate("process_cpu_seconds_total"),
                self._after.total("process_resident_memory_bytes"),
            ),
            workers=self._workers(),
            verbs=self._requests(lambda labels: labels["verb"]),
            resources=self._requests(_resource),
            slowest=self._slowest(),
            watchers=_greatest(self._changes.now_by("apiserver_longrunning_requests", _resource, verb="WATCH")),
            watch_events=self._changes.rate("apiserver_watch_events_total"),
            levels=self._levels(),
            queues=self._queues(),
            objects=_greatest(self._changes.now_by("apiserver_resource_objects", _resource)),
            store=self._store(),
            writes_of_a_commit=self._changes.mean("pilothouse_storage_commit_writes"),
        )

    def _version(self) -> str:
        for labels, _ in self._after.of("kubernetes_build_info"):
            return f"{labels.get('git_version', '')} ({labels.get('git_commit', '')[:20]})"
        return "unknown"

    def _workers(self) -> list[Process]:
        processor = self._changes.rates("pilothouse_worker_cpu_seconds_total", lambda labels: labels["worker"])
        memory = self._changes.now_by("pilothouse_worker_resident_memory_bytes", lambda labels: labels["worker"])
        return [Process(name, processor.get(name, 0.0), memory[name]) for name in sorted(memory)]

    def _requests(self, key: Callable[[Labels], str]) -> list[Row]:
        """Return short requests by `key`, most frequent first."""
        failed = self._changes.rates(
            "apiserver_request_total", key, lambda labels: _is_short(labels) and labels["code"] >= "400"
        )
        rows = self._changes.timed("apiserver_request_duration_seconds", key, _is_short)
        return [Row(row.name, row.rate, row.median, row.p99, failed.get(row.name, 0.0)) for row in rows]

    def _slowest(self) -> list[dict[str, Any]] | None:
        if self._after.requests is None:
            return None
        return sorted(self._after.requests, key=lambda request: float(request["seconds"]), reverse=True)

    def _levels(self) -> list[Level]:
        def by_level(name: str) -> dict[str, float]:
            return self._changes.now_by(name, lambda labels: labels["priority_level"])

        executing = by_level("apiserver_flowcontrol_current_executing_requests")
        waiting = by_level("apiserver_flowcontrol_current_inqueue_requests")
        seats = by_level("apiserver_flowcontrol_nominal_limit_seats")
        return [Level(name, executing.get(name, 0), waiting.get(name, 0), seats[name]) for name in sorted(seats)]

    def _queues(self) -> list[tuple[str, float, float]]:
        depth = self._changes.now_by("workqueue_depth", lambda labels: labels["name"])
        adds = self._changes.rates("workqueue_adds_total", lambda labels: labels["name"])
        rows = [(name, depth.get(name, 0.0), adds.get(name, 0.0)) for name in depth.keys() | adds.keys()]
        return sorted((row for row in rows if row[1] or row[2]), key=lambda row: (-row[1], -row[2], row[0]))

    def _store(self) -> list[Row]:
        commits = self._changes.timed("pilothouse_storage_commit_duration_seconds", lambda labels: "commit")
        return [
            *commits,
            *self._changes.timed("etcd_request_duration_seconds", lambda labels: labels.get("operation", "")),
        ]


def _is_short(labels: Labels) -> bool:
    return labels["verb"] not in _LONG_RUNNING


def _resource(labels: Labels) -> str:
    name = f"{labels['resource']}/{labels['subresource']}" if labels.get("subresource") else labels["resource"]
    return f"{name}.{labels['group']}" if labels.get("group") and name else name or "(no resource)"


def _greatest(values: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(((name, value) for name, value in values.items() if value), key=lambda pair: (-pair[1], pair[0]))


@dataclass(frozen=True, slots=True)
class Row:
    """Rate (per second), median and 99th percentile of one name."""

    name: str
    rate: float
    median: float | None = None
    p99: float | None = None
    errors: float = 0.0


class Changes:
    """Differences between two scrapes."""

    def __init__(self, before: Scrape, after: Scrape) -> None:
        self._before, self._after = before, after
        self._seconds = max(after.at - before.at, 1e-9)

    def timed(self, name: str, key: Callable[[Labels], str], only: Callable[[Labels], bool] = bool) -> list[Row]:
        """Return rates and quantiles of a histogram by `key`, most frequent first. Rows without observations are
        dropped.
        """
        buckets: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, increase in self._increases(f"{name}_bucket"):
            if only(labels):
                buckets[key(labels)][float(labels["le"])] += increase
        rows = [_timed_row(group, sorted(counts.items()), self._seconds) for group, counts in buckets.items()]
        return sorted((row for row in rows if row.rate), key=lambda row: (-row.rate, row.name))

    def rates(self, name: str, key: Callable[[Labels], str], only: Callable[[Labels], bool] = bool) -> dict[str, float]:
        """Return the rate of a counter by `key`, per second."""
        rates: dict[str, float] = defaultdict(float)
        for labels, increase in self._increases(name):
            if only(labels):
                rates[key(labels)] += increase / self._seconds
        return rates

    def rate(self, name: str) -> float:
        """Return the total rate of a counter, per second."""
        return sum(increase for _, increase in self._increases(name)) / self._seconds

    def mean(self, name: str) -> float | None:
        """Return the mean of a histogram; None without observations."""
        count = sum(increase for _, increase in self._increases(f"{name}_count"))
        return sum(increase for _, increase in self._increases(f"{name}_sum")) / count if count else None

    def _increases(self, name: str) -> Iterable[tuple[Labels, float]]:
        """Yield the increase of each counter. A lower value means a restart from zero."""
        before = {frozenset(labels.items()): value for labels, value in self._before.of(name)}
        for labels, value in self._after.of(name):
            known = before.get(frozenset(labels.items()), 0.0)
            yield labels, value - known if value >= known else value

    def now_by(self, name: str, key: Callable[[Labels], str], **only: str) -> dict[str, float]:
        """Return a gauge by `key` at the second scrape, restricted to the given labels."""
        values: dict[str, float] = defaultdict(float)
        for labels, value in self._after.of(name):
            if all(labels.get(label) == wanted for label, wanted in only.items()):
                values[key(labels)] += value
        return values


def _timed_row(name: str, counts: list[tuple[float, float]], seconds: float) -> Row:
    return Row(name, counts[-1][1] / seconds, quantile(counts, 0.5), quantile(counts, 0.99))


def quantile(counts: list[tuple[float, float]], of: float) -> float | None:
    """Return a quantile by linear interpolation, as Prometheus' histogram_quantile; None without observations.

    Returns the last finite bound if the quantile lies in the infinite bucket.
    `counts`: sorted (upper bound, cumulative count); the last bound is infinite.
    """
    wanted = counts[-1][1] * of
    lower, below = 0.0, 0.0
    for bound, count in counts:
        if count >= wanted and count > below:
            return lower if bound == float("inf") else lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return None
