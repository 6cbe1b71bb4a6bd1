"""Match conditions: expressions that must all be true of a request for a webhook or a policy to have a say.

One that is false decides, whatever the others do. Otherwise one that fails makes the whole fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.evaluation import (
    MATCH_CONDITIONS_BUDGET,
    Activation,
    ExpressionEvaluator,
    OutOfBudget,
)
from pilothouse.apiserver.cel.expression import NamedExpression, compiled
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.objects import Json


class MatchFailed(Exception):
    """A match condition that could not be evaluated; the failure policy decides what follows."""


class MatchConditions:
    def __init__(self, conditions: Sequence[NamedExpression]) -> None:
        self._conditions = tuple(conditions)

    @staticmethod
    def of_admission(conditions: Sequence[Json], *, params: bool = False) -> MatchConditions:
        """`params`: whether the conditions may look at parameters."""
        compiler, declarations = AdmissionCompiler(), Declarations(params=params)
        expressions = (
            NamedExpression(each["name"], compiled(compiler, each["expression"].strip(), declarations, types=("bool",)))
            for each in conditions
        )
        return MatchConditions(tuple(expressions))

    async def failed_condition(
        self, variables: Mapping[str, Any], authorizations: Authorizations | None = None
    ) -> str | None:
        """The name of the first condition that is false; None if there is none. Raises MatchFailed."""
        evaluator = ExpressionEvaluator(Activation(variables, {}), authorizations, MATCH_CONDITIONS_BUDGET)
        errors: list[str] = []
        try:
            for condition in self._conditions:
                evaluation = await evaluator.evaluate(condition.expression)
                if evaluation.error:
                    errors.append(evaluation.error)
                elif evaluation.value is False:
                    return condition.name
        except OutOfBudget as error:
            raise MatchFailed(str(error)) from None
        if errors:
            raise MatchFailed(_aggregate(errors))
        return None

    async def matches(self, variables: Mapping[str, Any], authorizations: Authorizations | None = None) -> bool:
        """Raises MatchFailed."""
        return not self._conditions or await self.failed_condition(variables, authorizations) is None


def _aggregate(errors: Sequence[str]) -> str:
    """Join the errors, each once, as Go's aggregate does."""
    each = list(dict.fromkeys(errors))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
