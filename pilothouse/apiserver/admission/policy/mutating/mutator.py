"""A compiled mutating policy: match conditions and mutations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pilothouse.apiserver.admission.equivalents import ServedForm
from pilothouse.apiserver.admission.policy.composition import Composition
from pilothouse.apiserver.admission.policy.mutating.apply_configuration import configured
from pilothouse.apiserver.admission.policy.mutating.errors import MutationFailed
from pilothouse.apiserver.admission.policy.mutating.json_patching import json_patched
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.evaluation import BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_Patch: TypeAlias = Callable[[ServedForm, Json, Any], Json]


@dataclass(frozen=True, slots=True)
class Mutation:
    expression: Expression
    patch: _Patch
    variables: Mapping[str, Expression]

    async def mutated(
        self, form: ServedForm, obj: Json, variables: Mapping[str, Any], authorizations: Authorizations
    ) -> Json:
        """Return the mutated copy. Raises MutationFailed or InternalError."""
        if self.expression.program is None:
            raise MutationFailed(self.expression.problem)
        evaluator = ExpressionEvaluator(Activation(variables, self.variables), authorizations, BUDGET)
        try:
            evaluation = await evaluator.evaluate(self.expression)
        except OutOfBudget as error:
            raise MutationFailed(str(error)) from None
        if evaluation.error:
            raise MutationFailed(evaluation.error)
        return self.patch(form, obj, evaluation.value)


class Mutator:
    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        self.reinvocable = spec.get("reinvocationPolicy") == "IfNeeded"
        self._composition = Composition(policy)
        self.mutations = [self._mutation(each) for each in spec.get("mutations") or ()]

    async def is_about(self, seen: VersionedAttributes, params: Json | None, authorizations: Authorizations) -> bool:
        """Return whether the match conditions hold. Raises MutationFailed."""
        try:
            return await self._composition.is_about(seen, params, authorizations)
        except MatchFailed as error:
            raise MutationFailed(str(error)) from None

    def _mutation(self, mutation: Json) -> Mutation:
        by_configuration = mutation.get("patchType") == "ApplyConfiguration"
        patch, kind = (configured, "Object") if by_configuration else (json_patched, "list(JSONPatch)")
        part = mutation.get("applyConfiguration" if by_configuration else "jsonPatch") or {}
        declarations = self._composition.declarations(patch_types=True)
        expression = compiled(self._composition.compiler, part.get("expression") or "", declarations, types=(kind,))
        return Mutation(expression, patch, self._composition.variables)
