"""A compiled validating policy: evaluates a request into decisions and audit annotations."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pilothouse.apiserver.admission.policy.invocations import Composition
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.evaluation import (
    BUDGET,
    OUT_OF_BUDGET,
    Activation,
    Evaluation,
    ExpressionEvaluator,
    OutOfBudget,
)
from pilothouse.apiserver.cel.expression import Expression, NamedExpression, compiled
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.machinery.cel.interpreter.values import type_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


class PolicyDecisionEvaluation(Enum):
    ADMIT = "admit"
    DENY = "deny"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Decision of an expression."""

    denied: bool
    """Errors deny unless failurePolicy is Ignore."""
    outcome: PolicyDecisionEvaluation
    message: str = ""
    reason: str = ""
    elapsed: float = 0.0

    @property
    def error_type(self) -> str:
        """Return the metric label of the error."""
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
    """A non-empty error denies the request."""
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class ValidateResult:
    decisions: tuple[PolicyDecision, ...] = ()
    annotations: tuple[AuditAnnotation, ...] = ()


_LONGEST_MESSAGE = 5 * 1024
_AUTHORIZER = ("authorizer", "authorizer.requestResource")


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message_expression: Expression | None
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Evaluated:
    evaluation: Evaluation
    elapsed: float


class PolicyValidator:
    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        self._fails_open = spec.get("failurePolicy") == "Ignore"
        self._composition = composition = Composition(policy)
        self._validations = [_validation(composition, each) for each in spec.get("validations") or ()]
        self._annotations = [_annotation(composition, each) for each in spec.get("auditAnnotations") or ()]

    async def validate(
        self, seen: VersionedAttributes, variables: Mapping[str, Any], authorizations: Authorizations
    ) -> ValidateResult:
        """Evaluate the policy; `variables` are the request's CEL variables, including the authorizer."""
        try:
            if not await self._composition.is_about(seen, variables["params"], authorizations):
                return ValidateResult()
            decisions = await self._decide(variables, authorizations)
            return ValidateResult(tuple(decisions), tuple(await self._annotate(variables)))
        except (MatchFailed, OutOfBudget) as error:
            return ValidateResult((self._failure(str(error)),))

    async def _decide(self, variables: Mapping[str, Any], authorizations: Authorizations) -> Sequence[PolicyDecision]:
        evaluator = self._evaluator(variables, authorizations, BUDGET)
        evaluated = [await _timed(evaluator, each.expression) for each in self._validations]
        if all(each.evaluation.value is True for each in evaluated):
            return [ADMITTED] * len(evaluated)
        try:
            messages = await self._messages(variables, evaluator.budget)
        except OutOfBudget as error:
            return [self._decision(each, why=f"failed messageExpression: {error}") for each in evaluated]
        return [
            self._decision(each, denial=_message(validation, message), reason=validation.reason)
            for validation, each, message in zip(self._validations, evaluated, messages, strict=True)
        ]

    def _decision(self, evaluated: _Evaluated, *, why: str = "", denial: str = "", reason: str = "") -> PolicyDecision:
        """Build the decision; `why` is an error outside of the expression."""
        if problem := evaluated.evaluation.error or why:
            return self._failure(problem, evaluated.elapsed)
        if evaluated.evaluation.value is True:
            return ADMITTED
        return PolicyDecision(True, PolicyDecisionEvaluation.DENY, denial, reason, evaluated.elapsed)

    async def _messages(self, variables: Mapping[str, Any], budget: int) -> list[Evaluation]:
        evaluator = self._evaluator(_without_authorizer(variables), None, budget)
        return [
            Evaluation() if each.message_expression is None else await evaluator.evaluate(each.message_expression)
            for each in self._validations
        ]

    async def _annotate(self, variables: Mapping[str, Any]) -> list[AuditAnnotation]:
        evaluator = self._evaluator(_without_authorizer(variables), None, BUDGET)
        evaluated = [(each, await _timed(evaluator, each.expression)) for each in self._annotations]
        found = (self._annotation(*each) for each in evaluated)
        return [annotation for annotation in found if annotation is not None]

    def _annotation(self, named: NamedExpression, evaluated: _Evaluated) -> AuditAnnotation | None:
        """Return the audit annotation, or None for null and empty values."""
        evaluation = evaluated.evaluation
        if evaluation.error:
            error = AuditAnnotation(named.name, error=evaluation.error, elapsed=evaluated.elapsed)
            return None if self._fails_open else error
        if evaluation.value is None:
            return None
        if not isinstance(evaluation.value, str):
            what = f"valueExpression '{named.expression.source}' resulted in unsupported return type"
            reason = f"{what}: {type_name(evaluation.value)}. Return type must be either string or null."
            return AuditAnnotation(named.name, error=reason, elapsed=evaluated.elapsed)
        value = evaluation.value.strip()
        return AuditAnnotation(named.name, value, elapsed=evaluated.elapsed) if value else None

    def _evaluator(
        self, variables: Mapping[str, Any], authorizations: Authorizations | None, budget: int
    ) -> ExpressionEvaluator:
        return ExpressionEvaluator(Activation(variables, self._composition.variables), authorizations, budget)

    def _failure(self, message: str, elapsed: float = 0.0) -> PolicyDecision:
        return PolicyDecision(not self._fails_open, PolicyDecisionEvaluation.ERROR, message, elapsed=elapsed)


async def _timed(evaluator: ExpressionEvaluator, expression: Expression) -> _Evaluated:
    start = time.perf_counter()
    evaluation = await evaluator.evaluate(expression)
    return _Evaluated(evaluation, time.perf_counter() - start)


def _without_authorizer(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if name not in _AUTHORIZER}


def _message(validation: _Validation, evaluation: Evaluation) -> str:
    """Return the value of messageExpression if valid, else the fixed message, else the expression."""
    text = evaluation.value.strip() if isinstance(evaluation.value, str) else ""
    if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
        return text
    return validation.message.strip() or f"failed expression: {validation.expression.source.strip()}"


def _validation(composition: Composition, validation: Json) -> _Validation:
    compiler, message = composition.compiler, validation.get("messageExpression") or ""
    return _Validation(
        compiled(compiler, validation["expression"], composition.declarations(), types=("bool",)),
        compiled(compiler, message, composition.declarations(authorizer=False), types=("string",)) if message else None,
        validation.get("message") or "",
        validation.get("reason") or "Invalid",
    )


def _annotation(composition: Composition, annotation: Json) -> NamedExpression:
    source, types = annotation["valueExpression"], ("string", "null_type")
    return NamedExpression(
        annotation["key"], compiled(composition.compiler, source, composition.declarations(), types=types)
    )
