"""The MutatingAdmissionPolicy plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.policy.plugin import PolicyPlugin
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.admission.policy.invocations import Invocations
    from pilothouse.apiserver.admission.policy.mutating.dispatcher import MutatingDispatcher
    from pilothouse.apiserver.admission.policy.mutating.mutator import Mutator


class MutatingAdmissionPolicy(PolicyPlugin["Mutator"]):
    name = "MutatingAdmissionPolicy"

    def handles(self, operation: Operation) -> bool:
        """Return False for DELETE, which has no object to mutate."""
        return operation is not Operation.DELETE

    async def admit(self, attributes: Attributes) -> None:
        await self._dispatch(attributes)

    def _compile(self, policy: Json) -> Mutator:
        from pilothouse.apiserver.admission.policy.mutating.mutator import Mutator

        return Mutator(policy)

    def _new_dispatcher(self, invocations: Invocations[Mutator], authorizer: Authorizer) -> MutatingDispatcher:
        from pilothouse.apiserver.admission.policy.mutating.dispatcher import MutatingDispatcher

        return MutatingDispatcher(invocations, authorizer)
