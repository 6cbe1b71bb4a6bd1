"""How often and how long policies are evaluated, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally


class PolicyMetrics:
    """Those of one kind of policies; `labels` come after what every kind has."""

    def __init__(self, kind: str, labels: tuple[str, ...] = (), *, checks: str, seconds: str) -> None:
        prefix = f"apiserver_{kind}_admission_policy_check"
        labels = ("policy", "policy_binding", "error_type", *labels)
        self._checks = CounterTally(f"{prefix}_total", checks, labels, registry=REGISTRY)
        bounds = (0.0000005, 0.001, 0.01, 0.1, 1.0)
        self._seconds = HistogramTally(f"{prefix}_duration_seconds", seconds, labels, bounds=bounds, registry=REGISTRY)

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        self._checks.inc(labels)
        self._seconds.observe(labels, seconds)
