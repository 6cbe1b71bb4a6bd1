"""Evaluating the expressions of one policy on one request, within one budget.

An evaluation that proves long is begun again beside the loop, in turns between users. So it is when an authorization
check had to be waited for: expressions have no effects, so that running one again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.expression import Expression
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.cel.authorizer import AnswerMissing
from pilothouse.machinery.cel.interpreter.errors import CostLimitExceeded, EvaluationCancelled, EvaluationFailed
from pilothouse.machinery.cel.program import PER_CALL_LIMIT, EvaluationOutcome, Program
from pilothouse.machinery.dataclass import dataclass

BUDGET = 10_000_000
"""The cost that all expressions of one policy may have together on one request."""
MATCH_CONDITIONS_BUDGET = 2_500_000
_INLINE_LIMIT = 20_000
"""Some milliseconds: how long the event loop may be held up."""
_LONG_EVALUATION = 512 << 10
"""Bytes of other work that take about as long as an evaluation that proves long."""
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudget(Exception):
    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class _TooLong(EvaluationCancelled):
    """The evaluation would hold the event loop for too long."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    value: Any = None
    error: str = ""


class Activation(dict[str, Any]):
    """The variables that expressions see. Those of the policy are evaluated when first asked for, and once."""

    def __init__(self, values: Mapping[str, Any], composed: Mapping[str, Expression]) -> None:
        super().__init__(values)
        self._composed = composed
        self._failed: dict[str, str] = {}
        self.limit = PER_CALL_LIMIT
        self.spent = 0
        """By variables, since somebody last set it to nothing."""

    def __missing__(self, path: str) -> Any:
        name = path.removeprefix("variables.")
        expression = self._composed.get(name) if name != path else None
        if expression is None:
            raise KeyError(path)
        if name not in self._failed:
            outcome = self._run(name, expression)
            if outcome is not None and outcome.error is None:
                self[path] = outcome.value
                return outcome.value
        raise EvaluationFailed(self._failed[name])

    def _run(self, name: str, expression: Expression) -> EvaluationOutcome | None:
        if expression.program is None:
            self._failed[name] = f'composited variable "{name}" fails to compile: {expression.problem}'
            return None
        outcome = run(expression.program, self)
        self.spent += outcome.cost
        if outcome.error is not None:
            self._failed[name] = f'composited variable "{name}" fails to evaluate: {outcome.error}'
        return outcome


def run(program: Program, activation: Activation) -> EvaluationOutcome:
    outcome = program.run(activation, limit=activation.limit)
    if isinstance(outcome.error, CostLimitExceeded) and activation.limit < PER_CALL_LIMIT:
        raise _TooLong
    return outcome


class ExpressionEvaluator:
    def __init__(self, activation: Activation, authorizations: Authorizations | None, budget: int) -> None:
        self._activation = activation
        self._authorizations = authorizations
        self.budget = budget
        """The cost that is left."""

    async def evaluate(self, expression: Expression) -> Evaluation:
        """Raises OutOfBudget."""
        if expression.program is None:
            return Evaluation(error=f"compilation error: {expression.problem}")
        self._activation.spent = 0
        outcome = await self._outcome(expression.program)
        self.budget -= self._activation.spent + outcome.cost
        if self.budget < 0:
            raise OutOfBudget
        if outcome.error is not None:
            return Evaluation(error=f"expression '{expression.source}' resulted in error: {outcome.error}")
        return Evaluation(outcome.value)

    async def _outcome(self, program: Program) -> EvaluationOutcome:
        self._activation.limit = _INLINE_LIMIT
        while True:
            try:
                if self._activation.limit == PER_CALL_LIMIT:
                    weight = Weight(_user_of(self._activation), _LONG_EVALUATION)
                    return await weight.run(run, program, self._activation)
                return run(program, self._activation)
            except AnswerMissing as missing:
                assert self._authorizations is not None
                await self._authorizations.find_out(missing.check)
            except _TooLong:
                self._activation.limit = PER_CALL_LIMIT


def _user_of(variables: Mapping[str, Any]) -> str:
    """Return the name of the user whose request is evaluated; empty where expressions see none."""
    request = variables.get("request")
    if not isinstance(request, Mapping):
        return ""
    info = request.get("userInfo")
    return str((info.get("username") if isinstance(info, Mapping) else request.get("user")) or "")
