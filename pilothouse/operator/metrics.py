"""Metrics of a manager, with controller-runtime's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.client.rest.metrics import count_requests_in

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0),
    *(50.0, 60.0),
)
RESULTS = ("success", "error", "requeue", "requeue_after")


class ControllerMetrics:
    """Metrics of the controllers of a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        prefix = "controller_runtime"
        self.total = Counter(
            f"{prefix}_reconcile_total",
            "Total number of reconciliations per controller",
            ["controller", "result"],
            registry=registry,
        )
        self.errors = Counter(
            f"{prefix}_reconcile_errors_total",
            "Total number of reconciliation errors per controller",
            ["controller"],
            registry=registry,
        )
        self.terminal = Counter(
            f"{prefix}_terminal_reconcile_errors_total",
            "Total number of terminal reconciliation errors per controller",
            ["controller"],
            registry=registry,
        )
        self.panics = Counter(
            f"{prefix}_reconcile_panics_total",
            "Total number of reconciliation panics per controller",
            ["controller"],
            registry=registry,
        )
        self.seconds = Histogram(
            f"{prefix}_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            ["controller"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.workers = Gauge(
            f"{prefix}_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            ["controller"],
            registry=registry,
        )
        self.active = Gauge(
            f"{prefix}_active_workers",
            "Number of currently used workers per controller",
            ["controller"],
            registry=registry,
        )
        self.leading = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
            "'name' is the string used to identify the lease. Please make sure to group by name.",
            ["name"],
            registry=registry,
        )

    def register(self, controller: str, workers: int) -> None:
        """Create the series of a controller, so that rates start at 0."""
        for result in RESULTS:
            self.total.labels(controller, result)
        for counter in (self.errors, self.terminal, self.panics):
            counter.labels(controller)
        self.seconds.labels(controller)
        self.workers.labels(controller).set(workers)
        self.active.labels(controller).set(0)


class _RequestMetrics:
    """Counts the requests of all clients of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter

        self._requests = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=registry,
        )

    def throttled(self, method: str, host: str, seconds: float) -> None: ...

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None:
        self._requests.labels(code, method, host).inc()

    def sent(self, method: str, host: str, size: int) -> None: ...

    def received(self, method: str, host: str, size: int) -> None: ...

    def done(self, method: str, host: str, seconds: float) -> None: ...


def count_client_requests(registry: CollectorRegistry) -> None:
    """Report rest_client_requests_total of this process to the registry."""
    count_requests_in(_RequestMetrics(registry))
