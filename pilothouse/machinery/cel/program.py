"""An expression that can be evaluated, again and again, on plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import (
    CostLimitExceeded,
    EvaluationCancelled,
    EvaluationFailed,
)
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame
from pilothouse.machinery.dataclass import dataclass

PER_CALL_LIMIT = 1_000_000
"""The most that one evaluation may cost."""


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """A value, or why there is none; and what finding it cost."""

    cost: int
    value: Any = None
    error: EvaluationFailed | CostLimitExceeded | None = None


class Program:
    """Made from what a compiler answered. Safe to use from several threads."""

    def __init__(self, compiled: Any) -> None:
        # Servers without expressions do without the interpreter.
        from pilothouse.machinery.cel.interpreter.planner import Planner
        from pilothouse.machinery.cel.syntax import SyntaxTree

        tree = SyntaxTree(compiled)
        self._step = Planner(tree).plan(tree.root)

    def run(self, variables: Mapping[str, Any], *, limit: int = PER_CALL_LIMIT) -> EvaluationOutcome:
        """Raises AnswerMissing where an authorization check has no answer yet."""
        frame = ExecutionFrame(variables, limit)
        try:
            return EvaluationOutcome(value=self._step(frame), cost=frame.cost)
        except (EvaluationFailed, CostLimitExceeded) as error:
            error.__context__ = None  # like a traceback, it would keep what was evaluated until a garbage collection
            return EvaluationOutcome(error=error.with_traceback(None), cost=frame.cost)
        except RecursionError:
            return EvaluationOutcome(error=EvaluationFailed("expression is nested too deeply"), cost=frame.cost)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value. Raises EvaluationFailed."""
        outcome = self.run(variables)
        if outcome.error is not None:
            raise EvaluationFailed(str(outcome.error))
        return outcome.value


__all__ = [
    "PER_CALL_LIMIT",
    "CostLimitExceeded",
    "EvaluationCancelled",
    "EvaluationFailed",
    "EvaluationOutcome",
    "Program",
]
