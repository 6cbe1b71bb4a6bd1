"""The decisions and audit annotations of one policy about one request."""

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
    """About one expression."""

    denied: bool
    """Errors deny, unless the failure policy is Ignore."""
    outcome: PolicyDecisionEvaluation
    message: str = ""
    reason: str = ""
    elapsed: float = 0.0

    @property
    def error_type(self) -> str:
        """The name of the error in metrics."""
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
    """Denies the request."""
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class ValidateResult:
    decisions: tuple[PolicyDecision, ...] = ()
    annotations: tuple[AuditAnnotation, ...] = ()
