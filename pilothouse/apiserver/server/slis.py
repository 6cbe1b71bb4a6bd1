"""The outcome of health checks as metrics, shown at /metrics/slis apart from all others."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

SLI_REGISTRY = CollectorRegistry()

_LAST = Gauge(
    "kubernetes_healthcheck",
    "[STABLE] This metric records the result of a single healthcheck.",
    ["name", "type"],
    registry=SLI_REGISTRY,
)
_RUNS = Counter(
    "kubernetes_healthchecks",
    "[STABLE] This metric records the results of all healthcheck.",
    ["name", "type", "status"],
    registry=SLI_REGISTRY,
)


def observe_health_check(name: str, endpoint: str, *, passed: bool) -> None:
    _LAST.labels(name, endpoint).set(1 if passed else 0)
    _RUNS.labels(name, endpoint, "success" if passed else "error").inc()
