"""The priority classes that the system itself needs: there from the start, and their values never change."""

from __future__ import annotations

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES, SYSTEM_CLASSES

_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
    "but can be moved to another node if necessary.",
}


class SystemPriorityClasses:
    def __init__(self, registry: RegistryStore) -> None:
        self._classes = OwnAccess(registry)

    async def start(self, context: HookContext) -> None:
        for name, value in SYSTEM_CLASSES.items():
            await self._classes.ensure(
                {
                    "kind": "PriorityClass",
                    "apiVersion": PRIORITY_CLASSES.kind.api_version,
                    "metadata": {"name": name},
                    "value": value,
                    "description": _DESCRIPTIONS[name],
                }
            )
