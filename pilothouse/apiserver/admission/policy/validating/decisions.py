"""Decisions and audit annotations of a policy for a request."""

from __future__ import annotations

from enum import Enum

from pilothouse.apiserver.cel.evaluation import OUT_OF_BUDGET
from pilothouse.machinery.dataclass import dataclass


class PolicyDecisionEvaluation(Enum):
    ADMIT = "admit"
    DENY = "deny"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Decision of an expression."""

    denied: bool
    """Errors deny unless failurePolicy is Ignore."""
    outcome: PolicyDecisionEvaluation
    message: str = ""
    reason: str = ""
    elapsed: float = 0.0

    @property
    def error_type(self) -> str:
        """Return the metric label of the error."""
        if self.outcome is PolicyDecisionEvaluation.ADMIT:
            return "no_error"
        if self.message.startswith("compilation"):
            return "compile_error"
        if self.message.startswith(OUT_OF_BUDGET):
            return "out_of_budget"
        return "invalid_error"


ADMITTED = PolicyDecision(False, PolicyDecisionEvaluation.ADMIT)


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    key: str
    value: str = ""
    error: str = ""
    """A non-empty error denies the request."""
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class ValidateResult:
    decisions: tuple[PolicyDecision, ...] = ()
    annotations: tuple[AuditAnnotation, ...] = ()
