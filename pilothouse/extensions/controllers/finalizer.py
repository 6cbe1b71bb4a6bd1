"""The finalizing controller: deletes the custom resources of a terminating definition, then removes its finalizer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.extensions.controllers.definitions import DefinitionInformer, StatusWriter
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, TERMINATING
from pilothouse.extensions.customresourcedefinitions.storage import CLEANUP_FINALIZER
from pilothouse.extensions.customresources.served_definition import SharedRegistry
from pilothouse.kinds.conditions import Condition, is_true, set_condition
from pilothouse.kinds.deletion import finalizers_of, is_deletion_candidate
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError, aggregate

_POLL = 0.2
_PATIENCE = 60.0

_IN_PROGRESS = Condition(TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_COMPLETED = Condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
_NEVER_ESTABLISHED = Condition(TERMINATING, "False", "NeverEstablished", "resource was never established")
_OVERLAPPING = Condition(
    TERMINATING, "False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"
)
_OVERLAPPING_BUILT_INS = frozenset(
    {"apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"}
)


class InstanceDeletionFailed(Exception):
    """Some custom resources remain; the deletion is retried."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.condition = Condition(TERMINATING, "True", reason, message)


class FinalizingController:
    def __init__(
        self, definitions: DefinitionInformer, writer: StatusWriter, registry: Callable[[str], SharedRegistry | None]
    ) -> None:
        self._definitions = definitions
        self._writer = writer
        self._registry = registry

    async def sync(self, name: str) -> None:
        """Finalize the definition. Raises InstanceDeletionFailed."""
        definition = self._definitions.get(name)
        if definition is None or not is_deletion_candidate(definition, CLEANUP_FINALIZER):
            return
        await self._writer.write(definition, lambda current: set_condition(current, _IN_PROGRESS))
        try:
            done = await self._clean_up(definition)
        except InstanceDeletionFailed as failure:
            if self._definitions.get(name) is None:
                return
            condition = failure.condition
            await self._writer.write(definition, lambda current: set_condition(current, condition))
            raise
        await self._writer.write(definition, lambda current: _finish(current, done))

    async def _clean_up(self, definition: Json) -> Condition:
        name = name_of(definition)
        if name in _OVERLAPPING_BUILT_INS:
            return _OVERLAPPING
        if not is_true(definition, ESTABLISHED):
            return _NEVER_ESTABLISHED
        shared = self._registry(name)
        if shared is None:
            raise InstanceDeletionFailed("InstanceDeletionFailed", f"could not list instances: {name} is not served")
        await shared.start()
        try:
            await _delete_all(OwnAccess(shared.registry))
        except StatusError as error:
            raise InstanceDeletionFailed(
                "InstanceDeletionFailed", f"could not list instances: {error.message}"
            ) from None
        return _COMPLETED


async def _delete_all(access: OwnAccess) -> None:
    """Delete all custom resources, and wait until none is left, including resources with finalizers."""
    problems: list[str] = []
    for instance in await access.list():
        try:
            await access.delete(name_of(instance), namespace=namespace_of(instance))
        except StatusError as error:
            problems.append(error.message)
    if problems:
        raise InstanceDeletionFailed("InstanceDeletionFailed", f"could not issue all deletes: {aggregate(problems)}")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while await access.list():
        if loop.time() > deadline:
            reason = "could not confirm zero CustomResources remaining: timed out waiting for the condition"
            raise InstanceDeletionFailed("InstanceDeletionCheck", reason)
        await asyncio.sleep(_POLL)


def _finish(current: Json, condition: Condition) -> None:
    set_condition(current, condition)
    metadata(current)["finalizers"] = [name for name in finalizers_of(current) if name != CLEANUP_FINALIZER]
