"""Match conditions of an authorization webhook: all expressions must be true.

A false expression decides, regardless of errors in others. Otherwise an error fails the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pilothouse.apiserver.cel.evaluation import MATCH_CONDITIONS_BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled_in
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.library.rows import parse_type
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

_REVIEW = "kubernetes.SubjectAccessReviewSpec"
_TEXT, _TEXTS = "string", "list(string)"
_SELECTOR = {"rawSelector": _TEXT, "requirements": "list(kubernetes.SelectorRequirement)"}
_STRUCTS = {
    "kubernetes.SelectorRequirement": {"key": _TEXT, "operator": _TEXT, "values": _TEXTS},
    "kubernetes.FieldSelectorAttributes": _SELECTOR,
    "kubernetes.LabelSelectorAttributes": _SELECTOR,
    "kubernetes.ResourceAttributes": {
        **dict.fromkeys(("namespace", "verb", "group", "version", "resource", "subresource", "name"), _TEXT),
        "fieldSelector": "kubernetes.FieldSelectorAttributes",
        "labelSelector": "kubernetes.LabelSelectorAttributes",
    },
    "kubernetes.NonResourceAttributes": {"path": _TEXT, "verb": _TEXT},
    _REVIEW: {
        "resourceAttributes": "kubernetes.ResourceAttributes",
        "nonResourceAttributes": "kubernetes.NonResourceAttributes",
        "user": _TEXT,
        "groups": _TEXTS,
        "extra": "map(string, list(string))",
        "uid": _TEXT,
    },
}
_ATTRIBUTES = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    structs = {name: {key: parse_type(kind) for key, kind in each.items()} for name, each in _STRUCTS.items()}
    return Environment({"request": _REVIEW}, structs)


def compiled_condition(source: str) -> Expression:
    return compiled_in(_environment(), source, types=("bool",))


class ReviewConditions:
    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = tuple(expressions)

    async def match(self, spec: Json) -> bool:
        """Return whether all conditions hold. Raises MatchFailed."""
        if not self._expressions:
            return True
        # Zero values for missing fields, so that expressions need no presence tests.
        seen: Json = {"user": "", "groups": [], "uid": "", "extra": {}} | spec
        if "resourceAttributes" in spec:
            seen["resourceAttributes"] = dict.fromkeys(_ATTRIBUTES, "") | spec["resourceAttributes"]
        evaluator = ExpressionEvaluator(Activation({"request": seen}, {}), None, MATCH_CONDITIONS_BUDGET)
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
