"""The priority classes that the system itself needs: there from the start, and their values never change."""

from __future__ import annotations

import logging

from pilothouse.apiserver.authn.tokens import loopback_user
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.options import GetOptions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES, SYSTEM_CLASSES
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json

_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
    "but can be moved to another node if necessary.",
}

_log = logging.getLogger(__name__)


class SystemPriorityClasses:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def start(self, context: HookContext) -> None:
        for name, value in SYSTEM_CLASSES.items():
            await self._ensure(name, value)

    async def _ensure(self, name: str, value: int) -> None:
        ctx = RequestContext("", PRIORITY_CLASSES.group_resource, loopback_user(), warn=_log.warning)
        try:
            await self._registry.get(ctx, name, GetOptions())
        except NotFound:
            obj: Json = {
                "kind": "PriorityClass",
                "apiVersion": PRIORITY_CLASSES.kind.api_version,
                "metadata": {"name": name},
                "value": value,
                "description": _DESCRIPTIONS[name],
            }
            PRIORITY_CLASSES.strategy.default(obj)
            try:
                await self._registry.create(ctx, obj, options=WriteOptions(), validate=_allow)
            except AlreadyExists:
                return


async def _allow(_: Json) -> None:
    """The server's own classes need nobody's admission."""
