"""What a policy says about a request."""

from __future__ import annotations

from enum import Enum

from pilothouse.apiserver.cel.evaluation import OUT_OF_BUDGET
from pilothouse.machinery.dataclass import dataclass


class Outcome(Enum):
    ADMIT = "admit"
    DENY = "deny"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Decision:
    """About one expression."""

    denied: bool
    """Errors deny, unless the failure policy is Ignore."""
    outcome: Outcome
    message: str = ""
    reason: str = ""
    elapsed: float = 0.0

    @property
    def error_type(self) -> str:
        """As metrics name it."""
        if self.outcome is Outcome.ADMIT:
            return "no_error"
        if self.message.startswith("compilation"):
            return "compile_error"
        if self.message.startswith(OUT_OF_BUDGET):
            return "out_of_budget"
        return "invalid_error"


ADMITTED = Decision(False, Outcome.ADMIT)


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    key: str
    value: str = ""
    error: str = ""
    """Denies the request."""
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class ValidateResult:
    decisions: tuple[Decision, ...] = ()
    annotations: tuple[AuditAnnotation, ...] = ()
