"""One evaluation under way: what it sees, and what it has cost so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded, EvaluationFailed
from pilothouse.machinery.dataclass import dataclass


class ExecutionFrame:
    __slots__ = ("cost", "limit", "locals", "variables")

    def __init__(self, variables: Mapping[str, Any], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0
        self.locals: dict[str, Any] = {}

    def check(self, cost: int) -> None:
        """Raise CostLimitExceeded if so much more may not be spent."""
        if self.cost + cost > self.limit:
            raise CostLimitExceeded

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded


Step: TypeAlias = Callable[[ExecutionFrame], Any]


@dataclass(frozen=True, slots=True)
class DeferredFailure:
    """Stands in for a local value that could not be made; it matters only when somebody looks at it."""

    error: EvaluationFailed


def attempted(step: Step, frame: ExecutionFrame) -> Any:
    try:
        return step(frame)
    except EvaluationFailed as error:
        return DeferredFailure(error.with_traceback(None))
