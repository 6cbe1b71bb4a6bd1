"""The MutatingAdmissionPolicy and ValidatingAdmissionPolicy plugins.

CEL evaluation is imported with the first policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.matching import Matcher
from pilothouse.apiserver.admission.policy import source
from pilothouse.apiserver.admission.policy.params import ParamReader
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.admission.policy.invocations import Invocations, PolicyDispatcher
    from pilothouse.apiserver.admission.policy.mutating_dispatcher import MutatingDispatcher
    from pilothouse.apiserver.admission.policy.mutator import Mutator
    from pilothouse.apiserver.admission.policy.validating_dispatcher import ValidatingDispatcher
    from pilothouse.apiserver.admission.policy.validator import PolicyValidator


E = TypeVar("E")


class PolicyPlugin(ABC, Generic[E]):
    """Base of policy plugins; E is the evaluator of a policy."""

    def __init__(
        self,
        *,
        policies: RegistryStore,
        bindings: RegistryStore,
        matcher: Matcher,
        params: ParamReader,
        authorizer: Authorizer,
        static: source.GetPolicyManifests = source.no_policy_manifests,
    ) -> None:
        self._source: source.PolicySource[E] = source.PolicySource(
            CompiledObjects(policies, lambda obj: source.AdmissionPolicy(obj, self._compile)),
            CompiledObjects(bindings, source.PolicyBinding.of),
            source.StaticPolicies(static, self._compile),
        )
        self._matcher, self._params, self._authorizer = matcher, params, authorizer
        self._dispatcher: PolicyDispatcher[E] | None = None

    @abstractmethod
    def _compile(self, policy: Json) -> E: ...

    @abstractmethod
    def _new_dispatcher(self, invocations: Invocations[E], authorizer: Authorizer) -> PolicyDispatcher[E]: ...

    async def _dispatch(self, attributes: Attributes) -> None:
        hooks = await self._source.hooks(attributes)
        if not hooks:
            return
        if self._dispatcher is None:
            from pilothouse.apiserver.admission.policy.invocations import Invocations

            self._dispatcher = self._new_dispatcher(Invocations(self._matcher, self._params), self._authorizer)
        await self._dispatcher.dispatch(hooks, attributes)


class MutatingAdmissionPolicy(PolicyPlugin["Mutator"]):
    name = "MutatingAdmissionPolicy"

    def handles(self, operation: Operation) -> bool:
        """Return False for DELETE, which has no object to mutate."""
        return operation is not Operation.DELETE

    async def admit(self, attributes: Attributes) -> None:
        await self._dispatch(attributes)

    def _compile(self, policy: Json) -> Mutator:
        from pilothouse.apiserver.admission.policy.mutator import Mutator

        return Mutator(policy)

    def _new_dispatcher(self, invocations: Invocations[Mutator], authorizer: Authorizer) -> MutatingDispatcher:
        from pilothouse.apiserver.admission.policy.mutating_dispatcher import MutatingDispatcher

        return MutatingDispatcher(invocations, authorizer)


class ValidatingAdmissionPolicy(PolicyPlugin["PolicyValidator"]):
    name = "ValidatingAdmissionPolicy"

    def handles(self, operation: Operation) -> bool:
        return True

    async def validate(self, attributes: Attributes) -> None:
        await self._dispatch(attributes)

    def _compile(self, policy: Json) -> PolicyValidator:
        from pilothouse.apiserver.admission.policy.validator import PolicyValidator

        return PolicyValidator(policy)

    def _new_dispatcher(
        self, invocations: Invocations[PolicyValidator], authorizer: Authorizer
    ) -> ValidatingDispatcher:
        from pilothouse.apiserver.admission.policy.validating_dispatcher import ValidatingDispatcher

        return ValidatingDispatcher(invocations, authorizer)
