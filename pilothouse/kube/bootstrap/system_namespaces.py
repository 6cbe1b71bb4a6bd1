"""The namespaces that every cluster has: created at start, and again whenever one is missing."""

from __future__ import annotations

from functools import partial

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.machinery.objects import Json

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")

_PERIOD = 60.0


class SystemNamespaces:
    def __init__(self, namespaces: RegistryStore) -> None:
        self._namespaces = tracked_access(namespaces)

    async def start(self, context: HookContext) -> None:
        await self.sync()
        context.spawn(repeat(self.sync, every=_PERIOD), name="system-namespaces-controller")

    async def sync(self) -> None:
        """One that can not be created now is tried again in the next round."""
        for name in SYSTEM_NAMESPACES:
            namespace: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            complaint = f"unable to create required kubernetes system Namespace {name}"
            await try_once(partial(self._namespaces.ensure, namespace), complaint)
