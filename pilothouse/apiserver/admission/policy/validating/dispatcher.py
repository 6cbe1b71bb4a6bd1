"""Dispatch to validating policies: the answer is the first thing that one denies, after all have been asked."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.policy.hooks import Binding, Hook
from pilothouse.apiserver.admission.policy.invocations import Invocation, Invocations, Misconfigured
from pilothouse.apiserver.admission.policy.validating.audit import CollectedAnnotations, publish_failure
from pilothouse.apiserver.admission.policy.validating.decisions import Decision, Outcome, ValidateResult
from pilothouse.apiserver.admission.policy.validating.metrics import observe
from pilothouse.apiserver.admission.policy.validating.validator import Validator
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.apiserver.admission.variables import admission_variables
from pilothouse.apiserver.admission.versioned import versioned
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, Invalid, RequestEntityTooLarge, Unauthorized
from pilothouse.machinery.status_error import StatusError

_CLASSES: dict[str, type[StatusError]] = {
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "RequestEntityTooLarge": RequestEntityTooLarge,
}


@dataclass(frozen=True, slots=True)
class _Denial:
    policy: str
    binding: Binding | None
    message: str
    reason: str = ""


class Dispatcher:
    def __init__(self, invocations: Invocations[Validator], authorizer: Authorizer) -> None:
        self._invocations = invocations
        self._authorizer = authorizer

    async def dispatch(self, hooks: Sequence[Hook[Validator]], attributes: Attributes) -> None:
        """Raises what the policies refuse with."""
        authorizations = Authorizations(self._authorizer, attributes.user)
        denials = [denial for hook in hooks for denial in await self._denials(hook, attributes, authorizations)]
        if denials:
            raise _refusal(attributes, denials[0])

    async def _denials(
        self, hook: Hook[Validator], attributes: Attributes, authorizations: Authorizations
    ) -> Sequence[_Denial]:
        annotations = CollectedAnnotations()
        denials: list[_Denial] = []
        for invocation in await self._invocations.of(hook, attributes):
            result = await self._result(invocation, attributes, authorizations)
            if isinstance(result, ValidateResult):
                assert invocation.binding is not None
                enforcement = _Enforcement(hook.policy.name, invocation.binding, attributes, annotations)
                denials += enforcement.denials(result)
            elif not hook.policy.fails_open:
                denials.append(_Denial(hook.policy.name, invocation.binding, result.message))
        annotations.publish(hook.policy.name, attributes)
        return denials

    async def _result(
        self,
        invocation: Invocation[Validator] | Misconfigured[Validator],
        attributes: Attributes,
        authorizations: Authorizations,
    ) -> ValidateResult | Misconfigured[Validator]:
        if isinstance(invocation, Misconfigured):
            return invocation
        try:
            seen = await versioned(attributes, invocation.match)
        except StatusError as error:
            why = f"failed to configure binding: failed to convert object version: {error}"
            return Misconfigured(invocation.policy, invocation.binding, why)
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
    """Does what a binding asks for."""

    policy: str
    binding: Binding
    attributes: Attributes
    annotations: CollectedAnnotations

    def denials(self, result: ValidateResult) -> list[_Denial]:
        """What is to be refused."""
        denials: list[_Denial] = []
        for index, decision in enumerate(result.decisions):
            if decision.denied:
                denials += self._act(index, decision)
            elif decision.outcome is Outcome.ERROR:
                observe(self.policy, self.binding.name, decision, "allow")
        for annotation in result.annotations:
            if annotation.error:
                failure = Decision(True, Outcome.ERROR, annotation.error, elapsed=annotation.elapsed)
                denials.append(_Denial(self.policy, self.binding, failure.message))
                observe(self.policy, self.binding.name, failure, "deny")
            else:
                self.annotations.add(annotation.key, annotation.value)
        return denials

    def _act(self, index: int, decision: Decision) -> list[_Denial]:
        denials: list[_Denial] = []
        for action in self.binding.actions:
            if action == "Deny":
                denials.append(_Denial(self.policy, self.binding, decision.message, decision.reason))
            elif action == "Audit":
                publish_failure(self.attributes, self.binding, index, decision.message)
            elif action == "Warn":
                where = f"ValidatingAdmissionPolicy '{self.policy}' with binding '{self.binding.name}'"
                self.attributes.warn(f"Validation failed for {where}: {decision.message}")
            observe(self.policy, self.binding.name, decision, action.lower())
        return denials


def _refusal(attributes: Attributes, denial: _Denial) -> StatusError:
    """Reads as forbidden, whatever the reason that the policy gives."""
    by = f" with binding '{denial.binding.name}'" if denial.binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy}'{by} denied request: {denial.message}"
    forbidden = refused(attributes, message)
    details = {**(forbidden.details or {}), "causes": [{"message": message}]}
    return _CLASSES.get(denial.reason, Invalid)(forbidden.message, details=details)
