"""The ValidatingAdmissionPolicy plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.policy.plugin import PolicyPlugin
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.admission.policy.invocations import Invocations
    from pilothouse.apiserver.admission.policy.validating.dispatcher import ValidatingDispatcher
    from pilothouse.apiserver.admission.policy.validating.validator import PolicyValidator


class ValidatingAdmissionPolicy(PolicyPlugin["PolicyValidator"]):
    name = "ValidatingAdmissionPolicy"

    def handles(self, operation: Operation) -> bool:
        return True

    async def validate(self, attributes: Attributes) -> None:
        await self._dispatch(attributes)

    def _compile(self, policy: Json) -> PolicyValidator:
        from pilothouse.apiserver.admission.policy.validating.validator import PolicyValidator

        return PolicyValidator(policy)

    def _new_dispatcher(
        self, invocations: Invocations[PolicyValidator], authorizer: Authorizer
    ) -> ValidatingDispatcher:
        from pilothouse.apiserver.admission.policy.validating.dispatcher import ValidatingDispatcher

        return ValidatingDispatcher(invocations, authorizer)
