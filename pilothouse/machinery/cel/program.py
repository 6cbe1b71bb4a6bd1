"""An expression that can be evaluated, again and again, on plain values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from pilothouse.machinery.cel.interpreter.errors import (
    CostLimitExceeded,
    EvaluationCancelled,
    EvaluationFailed,
)
from pilothouse.machinery.cel.interpreter.frame import ExecutionFrame
from pilothouse.machinery.cel.interpreter.planner import Planner, ProgramFailed
from pilothouse.machinery.cel.recursion import room_for_recursion
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.dataclass import dataclass

PER_CALL_LIMIT = 1_000_000
"""The most that one evaluation may cost."""


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """A value, or the error in its place, and the cost of the evaluation."""

    cost: int
    value: Any = None
    error: EvaluationFailed | CostLimitExceeded | None = None


class Program:
    """Made from a checked tree. Raises ProgramFailed. Safe to use from several threads."""

    def __init__(self, tree: SyntaxTree) -> None:
        self._is_deep = tree.is_deep
        with room_for_recursion() if tree.is_deep else nullcontext():
            self._step = Planner().plan(tree.root)

    def run(self, variables: Mapping[str, Any], *, limit: int = PER_CALL_LIMIT) -> EvaluationOutcome:
        """Raises AnswerMissing where an authorization check has no answer yet."""
        if self._is_deep:
            with room_for_recursion():
                return self._run(variables, limit)
        return self._run(variables, limit)

    def _run(self, variables: Mapping[str, Any], limit: int) -> EvaluationOutcome:
        frame = ExecutionFrame(variables, limit)
        try:
            return EvaluationOutcome(value=self._step(frame), cost=frame.cost)
        except (EvaluationFailed, CostLimitExceeded) as error:
            error.__context__ = None  # like a traceback, it would keep what was evaluated until a garbage collection
            return EvaluationOutcome(error=error.with_traceback(None), cost=frame.cost)
        except RecursionError:
            return EvaluationOutcome(error=EvaluationFailed("value is nested too deeply"), cost=frame.cost)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Return the value. Raises EvaluationFailed."""
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
    "ProgramFailed",
]
