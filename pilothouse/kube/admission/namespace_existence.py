"""NamespaceExists and NamespaceAutoProvision: reject, or create, a missing namespace on a write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.admission.namespace_lifecycle import NamespacePhase, NamespaceReader
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

Ensure: TypeAlias = Callable[[Json], Awaitable[None]]
"""Creates an object unless the object exists."""

_NAMESPACES = GroupResource("", "namespaces")


class NamespaceExists(NamespaceReader, Handler):
    name = "NamespaceExists"
    operations = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)

    async def validate(self, attributes: Attributes) -> None:
        if _concerns_a_namespace(attributes) and await self._phase_of(attributes.namespace) is None:
            raise NotFound.of(_NAMESPACES, attributes.namespace)


class NamespaceAutoProvision(NamespaceReader, Handler):
    name = "NamespaceAutoProvision"
    operations = (Operation.CREATE,)

    def __init__(self, phase_of: NamespacePhase, ensure: Ensure) -> None:
        super().__init__(phase_of)
        self._ensure = ensure

    async def admit(self, attributes: Attributes) -> None:
        if attributes.dry_run or not _concerns_a_namespace(attributes):
            return
        if await self._phase_of(attributes.namespace) is None:
            await self._ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attributes.namespace}})


def _concerns_a_namespace(attributes: Attributes) -> bool:
    return bool(attributes.namespace) and attributes.resource.group_resource != _NAMESPACES
