"""How often and how long validating policies are checked, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.admission.policy.validating.decisions import Decision
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

_PREFIX = "apiserver_validating_admission_policy_"
_LABELS = ("policy", "policy_binding", "error_type", "enforcement_action")

_CHECKS = CounterTally(
    f"{_PREFIX}check_total",
    "Checks of validating admission policies by policy, binding, what went wrong and what was done.",
    _LABELS,
    registry=REGISTRY,
)
_SECONDS = HistogramTally(
    f"{_PREFIX}check_duration_seconds",
    "How long single expressions of validating admission policies take, with the labels of the checks.",
    _LABELS,
    bounds=(0.0000005, 0.001, 0.01, 0.1, 1.0),
    registry=REGISTRY,
)


def observe(policy: str, binding: str, decision: Decision, action: str) -> None:
    """`action` is allow, deny, audit or warn."""
    labels = (policy, binding, decision.error_type, action)
    _CHECKS.inc(labels)
    _SECONDS.observe(labels, decision.elapsed)
