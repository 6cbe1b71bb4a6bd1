"""AlwaysAdmit and AlwaysDeny: test plugins that admit or reject every write."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused


class AlwaysAdmit:
    name = "AlwaysAdmit"

    def handles(self, operation: Operation) -> bool:
        return False


class AlwaysDeny:
    name = "AlwaysDeny"

    def handles(self, operation: Operation) -> bool:
        return True

    async def admit(self, attributes: Attributes) -> None:
        raise refused(attributes, "admission control is denying all modifications")

    async def validate(self, attributes: Attributes) -> None:
        await self.admit(attributes)
