"""How often and how long validating policies are checked."""

from __future__ import annotations

from pilothouse.apiserver.admission.policy.metrics import PolicyMetrics
from pilothouse.apiserver.admission.policy.validating.decisions import Decision

_METRICS = PolicyMetrics(
    "validating",
    ("enforcement_action",),
    checks="Checks of validating admission policies by policy, binding, what went wrong and what was done.",
    seconds="How long single expressions of validating admission policies take, with the labels of the checks.",
)


def observe(policy: str, binding: str, decision: Decision, action: str) -> None:
    """`action` is allow, deny, audit or warn."""
    _METRICS.observe((policy, binding, decision.error_type, action), decision.elapsed)
