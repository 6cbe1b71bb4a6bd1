"""The ConfigMap from which extension API servers learn whose client certificates this cluster believes.

What other servers have written there stays, until it expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.certificate_bundle import join_bundles
from pilothouse.kube.bootstrap.rounds import keep, try_once
from pilothouse.machinery.objects import Json

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
CLIENT_CA = "client-ca-file"

_PERIOD = 60.0


class ClusterAuthenticationTrust:
    def __init__(self, config_maps: OwnAccess, client_cas: Sequence[Path]) -> None:
        self._config_maps = config_maps
        self._client_cas = client_cas

    async def start(self, context: HookContext) -> None:
        sync = partial(try_once, self.sync, f"error while syncing ConfigMap {NAMESPACE}/{NAME}")
        await sync()
        context.spawn(keep(sync, every=_PERIOD), name="cluster-authentication-info-controller")

    async def sync(self) -> None:
        """The files are read each time, because they may change. Raises StatusError, OSError, ValueError."""
        own = await asyncio.to_thread(lambda: [path.read_text() for path in self._client_cas])
        found = await self._config_maps.get(NAME, namespace=NAMESPACE)
        before: dict[str, str] = (found or {}).get("data") or {}
        bundle = join_bundles(before.get(CLIENT_CA, ""), own)
        if bundle == before.get(CLIENT_CA, ""):
            return
        if found is None:
            await self._create(bundle)
        else:
            await self._config_maps.update(found, lambda obj: obj.update(data=before | {CLIENT_CA: bundle}))

    async def _create(self, bundle: str) -> None:
        metadata: Json = {"name": NAME, "namespace": NAMESPACE}
        data = {CLIENT_CA: bundle}
        await self._config_maps.ensure({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
