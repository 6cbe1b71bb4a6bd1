"""Which requests a webhook is asked about: those of which all its expressions are true.

One that is false decides, whatever the others do. Otherwise one that fails makes the whole fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.cel.evaluation import MATCH_CONDITIONS_BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled_in
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

_ENVIRONMENT = Environment((("request", "kubernetes.SubjectAccessReviewSpec"),))
_ATTRIBUTES = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


def compiled_condition(source: str) -> Expression:
    return compiled_in(_ENVIRONMENT, source, types=("bool",))


class ReviewConditions:
    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = tuple(expressions)

    async def match(self, spec: Json) -> bool:
        """Raises MatchFailed."""
        if not self._expressions:
            return True
        evaluator = ExpressionEvaluator(
            Activation({"request": _with_zero_values(spec)}, {}), None, MATCH_CONDITIONS_BUDGET
        )
        errors = []
        try:
            for expression in self._expressions:
                evaluation = await evaluator.evaluate(expression)
                if evaluation.error:
                    errors.append(f"cel evaluation error: {evaluation.error}")
                elif evaluation.value is False:
                    return False
        except OutOfBudget as error:
            raise MatchFailed(str(error)) from None
        if errors:
            raise MatchFailed(aggregate(errors))
        return True


def _with_zero_values(spec: Json) -> Json:
    """Return the spec with empty values for fields it lacks, so that expressions need not ask for them."""
    seen: Json = {"user": "", "groups": [], "uid": "", "extra": {}} | spec
    if "resourceAttributes" in spec:
        seen["resourceAttributes"] = dict.fromkeys(_ATTRIBUTES, "") | spec["resourceAttributes"]
    return seen
