"""Dispatch to validating policies: evaluates all policies, publishes audit annotations, and raises the first denial."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pilothouse.apiserver.admission.interface import Attributes, refused
from pilothouse.apiserver.admission.policy import validator
from pilothouse.apiserver.admission.policy.invocations import VALIDATING, Invocation, Misconfigured, PolicyDispatcher
from pilothouse.apiserver.admission.policy.source import Hook, PolicyBinding
from pilothouse.apiserver.admission.versioned import admission_variables, versioned
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, Invalid, RequestEntityTooLarge, Unauthorized
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.version_rules import holds

_FAILURE = "validation.policy.admission.k8s.io/validation_failure"
_MAX_ANNOTATION_BYTES = 10 * 1024
_MAX_FAILURES = 50
_STATUS_BY_REASON: dict[str, type[StatusError]] = {
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "RequestEntityTooLarge": RequestEntityTooLarge,
}


@dataclass(frozen=True, slots=True)
class _Denial:
    policy: str
    binding: PolicyBinding | None
    message: str
    reason: str = ""


class ValidatingDispatcher(PolicyDispatcher[validator.PolicyValidator]):
    async def dispatch(self, hooks: Sequence[Hook[validator.PolicyValidator]], attributes: Attributes) -> None:
        """Evaluate the policies. Raises StatusError to reject."""
        authorizations = Authorizations(self._authorizer, attributes.user)
        failures: list[Json] = []
        denials = [
            denial for hook in hooks for denial in await self._denials(hook, attributes, authorizations, failures)
        ]
        if failures:
            published = failures[: _MAX_FAILURES if holds("AllFailuresOfPolicies") else 1]
            attributes.annotate(_FAILURE, json.dumps(published, separators=(",", ":"), ensure_ascii=False))
        if denials:
            raise _refusal(attributes, denials[0])

    async def _denials(
        self,
        hook: Hook[validator.PolicyValidator],
        attributes: Attributes,
        authorizations: Authorizations,
        failures: list[Json],
    ) -> Sequence[_Denial]:
        """Evaluate a policy. Return its denials, and append audited failures to `failures`."""
        annotations = CollectedAnnotations()
        denials: list[_Denial] = []
        for invocation in await self._invocations.of(hook, attributes):
            result = await self._result(invocation, attributes, authorizations)
            if isinstance(result, validator.ValidateResult):
                assert invocation.binding is not None
                enforcement = _Enforcement(hook.policy.name, invocation.binding, attributes, annotations, failures)
                denials += enforcement.denials(result)
            elif not hook.policy.fails_open:
                denials.append(_Denial(hook.policy.name, invocation.binding, result.message))
        annotations.publish(hook.policy.name, attributes)
        return denials

    async def _result(
        self,
        invocation: Invocation[validator.PolicyValidator] | Misconfigured[validator.PolicyValidator],
        attributes: Attributes,
        authorizations: Authorizations,
    ) -> validator.ValidateResult | Misconfigured[validator.PolicyValidator]:
        if isinstance(invocation, Misconfigured):
            return invocation
        try:
            seen = await versioned(attributes, invocation.match)
        except StatusError as error:
            reason = f"failed to configure binding: failed to convert object version: {error}"
            return Misconfigured(invocation.policy, invocation.binding, reason)
        variables = admission_variables(
            seen,
            resource=invocation.match.resource,
            namespace=await self._invocations.namespace_of(attributes),
            params=invocation.param,
            authorizations=authorizations,
        )
        return await invocation.policy.evaluator.validate(seen, variables, authorizations)


@dataclass(frozen=True, slots=True)
class _Enforcement:
    """Enforces the actions of a binding for a request."""

    policy: str
    binding: PolicyBinding
    attributes: Attributes
    annotations: CollectedAnnotations
    failures: list[Json]
    """Failures of bindings with the action Audit."""

    def denials(self, result: validator.ValidateResult) -> list[_Denial]:
        """Enforce the binding's actions for each decision, and return the denials."""
        denials: list[_Denial] = []
        for index, decision in enumerate(result.decisions):
            if decision.denied:
                denials += self._act(index, decision)
            elif decision.outcome is validator.PolicyDecisionEvaluation.ERROR:
                self._observe(decision, "allow")
        for annotation in result.annotations:
            if annotation.error:
                failure = validator.PolicyDecision(
                    True, validator.PolicyDecisionEvaluation.ERROR, annotation.error, elapsed=annotation.elapsed
                )
                denials.append(_Denial(self.policy, self.binding, failure.message))
                self._observe(failure, "deny")
            else:
                self.annotations.add(annotation.key, annotation.value)
        return denials

    def _act(self, index: int, decision: validator.PolicyDecision) -> list[_Denial]:
        denials: list[_Denial] = []
        for action in self.binding.actions:
            if action == "Deny":
                denials.append(_Denial(self.policy, self.binding, decision.message, decision.reason))
            elif action == "Audit":
                failure = {
                    "message": decision.message,
                    "policy": self.binding.policy_name,
                    "binding": self.binding.name,
                    "expressionIndex": index,
                    "validationActions": list(self.binding.actions),
                }
                self.failures.append(failure)
            elif action == "Warn":
                where = f"ValidatingAdmissionPolicy '{self.policy}' with binding '{self.binding.name}'"
                self.attributes.warn(f"Validation failed for {where}: {decision.message}")
            self._observe(decision, action.lower())
        return denials

    def _observe(self, decision: validator.PolicyDecision, action: str) -> None:
        VALIDATING.observe((self.policy, self.binding.name, decision.error_type, action), decision.elapsed)


def _refusal(attributes: Attributes, denial: _Denial) -> StatusError:
    """Build the rejection, with the text of Forbidden and the policy's reason."""
    by = f" with binding '{denial.binding.name}'" if denial.binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy}'{by} denied request: {denial.message}"
    forbidden = refused(attributes, message)
    details = {**(forbidden.details or {}), "causes": [{"message": message}]}
    return _STATUS_BY_REASON.get(denial.reason, Invalid)(forbidden.message, details=details)


class CollectedAnnotations:
    """Audit annotations of a policy from all bindings; distinct values of a key are joined."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}

    def add(self, key: str, value: str) -> None:
        values = self._values.setdefault(key, [])
        shortened = value.encode()[:_MAX_ANNOTATION_BYTES].decode(errors="ignore")
        if shortened not in values:
            values.append(shortened)

    def publish(self, policy: str, attributes: Attributes) -> None:
        for key, values in self._values.items():
            attributes.annotate(f"{policy}/{key}", ", ".join(values))
