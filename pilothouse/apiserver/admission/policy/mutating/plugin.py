"""MutatingAdmissionPolicy: whoever binds a policy may change what is written, by the expressions of the policy.

What evaluates expressions is loaded with the first policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.matching.matcher import Matcher
from pilothouse.apiserver.admission.policy.hooks import Binding, Policy
from pilothouse.apiserver.admission.policy.params import ParamReader
from pilothouse.apiserver.admission.policy.source import PolicySource
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.admission.policy.mutating.dispatcher import Dispatcher
    from pilothouse.apiserver.admission.policy.mutating.mutator import Mutator


class MutatingAdmissionPolicy:
    name = "MutatingAdmissionPolicy"

    def __init__(
        self,
        *,
        policies: RegistryStore,
        bindings: RegistryStore,
        matcher: Matcher,
        params: ParamReader,
        authorizer: Authorizer,
    ) -> None:
        self._source: PolicySource[Mutator] = PolicySource(
            CompiledObjects(policies, lambda obj: Policy(obj, _compile)), CompiledObjects(bindings, Binding.of)
        )
        self._matcher, self._params, self._authorizer = matcher, params, authorizer
        self._dispatcher: Dispatcher | None = None

    def handles(self, operation: Operation) -> bool:
        """There is nothing to change in a DELETE."""
        return operation is not Operation.DELETE

    async def admit(self, attributes: Attributes) -> None:
        hooks = await self._source.hooks(attributes)
        if hooks:
            await self._dispatch().dispatch(hooks, attributes)

    def _dispatch(self) -> Dispatcher:
        if self._dispatcher is None:
            from pilothouse.apiserver.admission.policy.invocations import Invocations
            from pilothouse.apiserver.admission.policy.mutating.dispatcher import Dispatcher

            self._dispatcher = Dispatcher(Invocations(self._matcher, self._params), self._authorizer)
        return self._dispatcher


def _compile(policy: Json) -> Mutator:
    from pilothouse.apiserver.admission.policy.mutating.mutator import Mutator

    return Mutator(policy)
