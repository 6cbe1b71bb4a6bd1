"""The namespaces that every cluster has: created at start, and again whenever one is missing."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.authn.tokens import loopback_user
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.options import GetOptions, WriteOptions
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.core.namespaces import NAMESPACES, NamespaceStorage
from pilothouse.machinery.errors import AlreadyExists, NotFound, StatusError
from pilothouse.machinery.objects import Json

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")

_PERIOD = 60.0
_log = logging.getLogger(__name__)


class SystemNamespaces:
    def __init__(self, storage: NamespaceStorage) -> None:
        self._storage = storage

    async def start(self, context: HookContext) -> None:
        await self.sync()
        context.spawn(self._keep(), name="system-namespaces-controller")

    async def sync(self) -> None:
        """One that can not be created now is tried again in the next round."""
        for name in SYSTEM_NAMESPACES:
            try:
                await self._ensure(name)
            except StatusError as error:
                _log.error("unable to create required kubernetes system Namespace %s: %s", name, error)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            await self.sync()

    async def _ensure(self, name: str) -> None:
        ctx = RequestContext("", NAMESPACES.group_resource, loopback_user(), warn=_log.warning)
        try:
            await self._storage.get(ctx, name, GetOptions())
        except NotFound:
            namespace: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            NAMESPACES.strategy.default(namespace)
            try:
                await self._storage.create(ctx, namespace, options=WriteOptions(), validate=_allow)
            except AlreadyExists:
                return


async def _allow(_: Json) -> None:
    """The server's own namespaces need nobody's admission."""
