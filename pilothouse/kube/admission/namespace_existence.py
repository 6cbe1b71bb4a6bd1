"""NamespaceExists and NamespaceAutoProvision: two other answers to a write into a namespace that is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.namespace_lifecycle import NamespacePhase
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

Ensure: TypeAlias = Callable[[Json], Awaitable[None]]
"""Creates an object unless it is there."""

_NAMESPACES = GroupResource("", "namespaces")


class NamespaceExists:
    name = "NamespaceExists"

    def __init__(self, phase_of: NamespacePhase) -> None:
        self._phase_of = phase_of

    def handles(self, operation: Operation) -> bool:
        return operation is not Operation.CONNECT

    async def validate(self, attributes: Attributes) -> None:
        if _concerns_a_namespace(attributes) and await self._phase_of(attributes.namespace) is None:
            raise NotFound.of(_NAMESPACES, attributes.namespace)


class NamespaceAutoProvision:
    name = "NamespaceAutoProvision"

    def __init__(self, phase_of: NamespacePhase, ensure: Ensure) -> None:
        self._phase_of = phase_of
        self._ensure = ensure

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.CREATE

    async def admit(self, attributes: Attributes) -> None:
        if attributes.dry_run or not _concerns_a_namespace(attributes):
            return
        if await self._phase_of(attributes.namespace) is None:
            await self._ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attributes.namespace}})


def _concerns_a_namespace(attributes: Attributes) -> bool:
    return bool(attributes.namespace) and attributes.resource.group_resource != _NAMESPACES
