"""The API approval controller: sets KubernetesAPIApprovalPolicyConformant on definitions in protected groups."""

from __future__ import annotations

from pilothouse.extensions.controllers.definitions import DefinitionInformer
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.customresourcedefinitions.approval import ApprovalState, approval_of, is_protected_group
from pilothouse.extensions.customresourcedefinitions.conditions import API_APPROVED
from pilothouse.kinds.conditions import Condition, find_condition, set_condition


class APIApprovalController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None or not is_protected_group(definition["spec"]["group"]):
            return
        approval = approval_of(definition)
        status = "True" if approval.state is ApprovalState.APPROVED else "False"
        condition = Condition(API_APPROVED, status, approval.state.value, approval.reason)
        if not condition.is_same_as(find_condition(definition, API_APPROVED)):
            await self._writer.write(definition, lambda current: set_condition(current, condition))
