"""Metrics of policy evaluations and their latency, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally


class PolicyMetrics:
    """The metrics of a kind of policy; `labels` follow the common labels policy, binding and error type."""

    def __init__(self, kind: str, labels: tuple[str, ...] = (), *, checks: str, seconds: str) -> None:
        prefix = f"apiserver_{kind}_admission_policy_check"
        labels = ("policy", "policy_binding", "error_type", *labels)
        self._checks = CounterTally(f"{prefix}_total", checks, labels, registry=REGISTRY)
        bounds = (0.0000005, 0.001, 0.01, 0.1, 1.0)
        self._seconds = HistogramTally(f"{prefix}_duration_seconds", seconds, labels, bounds=bounds, registry=REGISTRY)

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        self._checks.inc(labels)
        self._seconds.observe(labels, seconds)


VALIDATING = PolicyMetrics(
    "validating",
    ("enforcement_action",),
    checks="[BETA] Validation admission policy check total, labeled by policy and further identified by binding and "
    "enforcement action taken.",
    seconds="[BETA] Validation admission latency for individual validation expressions in seconds, labeled by policy "
    "and further including binding and enforcement action taken.",
)
"""Enforcement actions: allow, deny, audit and warn."""

MUTATING = PolicyMetrics(
    "mutating",
    checks="Mutations by mutating admission policies, by policy, binding and what went wrong.",
    seconds="How long single mutations by mutating admission policies take, with the labels of the checks.",
)
