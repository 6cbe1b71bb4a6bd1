"""How often and how long mutating policies are evaluated."""

from __future__ import annotations

from pilothouse.apiserver.admission.policy.metrics import PolicyMetrics

_METRICS = PolicyMetrics(
    "mutating",
    checks="Mutations by mutating admission policies, by policy, binding and what went wrong.",
    seconds="How long single mutations by mutating admission policies take, with the labels of the checks.",
)


def observe(policy: str, binding: str, error_type: str, seconds: float) -> None:
    _METRICS.observe((policy, binding, error_type), seconds)
