"""How often and how long mutating policies are evaluated, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

_PREFIX = "apiserver_mutating_admission_policy_"
_LABELS = ("policy", "policy_binding", "error_type")

_CHECKS = CounterTally(
    f"{_PREFIX}check_total",
    "Mutations by mutating admission policies, by policy, binding and what went wrong.",
    _LABELS,
    registry=REGISTRY,
)
_SECONDS = HistogramTally(
    f"{_PREFIX}check_duration_seconds",
    "How long single mutations by mutating admission policies take, with the labels of the checks.",
    _LABELS,
    bounds=(0.0000005, 0.001, 0.01, 0.1, 1.0),
    registry=REGISTRY,
)


def observe(policy: str, binding: str, error_type: str, seconds: float) -> None:
    labels = (policy, binding, error_type)
    _CHECKS.inc(labels)
    _SECONDS.observe(labels, seconds)
