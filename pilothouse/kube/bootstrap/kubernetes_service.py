"""The service `kubernetes` in `default`: created before readiness, with this server's address while ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.endpoint_reconciler import NAME, NAMESPACE, RENEW_EVERY, EndpointReconciler
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.machinery.objects import Json

PORT = 443
PERIOD = float(RENEW_EVERY)
_COMPLAINT = "unable to sync kubernetes service"
_UNREACHABLE_FOR = 2 * PERIOD

_log = logging.getLogger(__name__)


class KubernetesService:
    """`ranges_known` waits for the IP allocator, `ready` for the readiness of this server."""

    def __init__(
        self,
        services: OwnAccess,
        reconciler: EndpointReconciler,
        *,
        cluster_ip: str,
        address: PublicAddress,
        ranges_known: Callable[[], Awaitable[object]],
        ready: Callable[[], Awaitable[object]],
    ) -> None:
        self._services = services
        self._reconciler = reconciler
        self._cluster_ip = cluster_ip
        self._address = address
        self._ranges_known = ranges_known
        self._ready = ready

    async def start(self, context: HookContext) -> None:
        await try_once(self._forget_earlier_run, "error removing old endpoints from kubernetes service")
        await self._ranges_known()
        await try_once(self._ensure_service, _COMPLAINT)
        context.spawn(self._keep(), name="bootstrap-controller")

    async def stop(self) -> None:
        """Remove the address, within a short timeout for an unreachable store."""
        async with asyncio.timeout(_UNREACHABLE_FOR):
            await self._reconciler.remove()

    async def sync(self) -> None:
        """Create a missing service and update its endpoints. An existing service is kept."""
        await try_once(self._ensure_service, _COMPLAINT)
        if not self._address.is_loopback:
            await try_once(self._reconciler.reconcile, _COMPLAINT)

    async def _keep(self) -> None:
        await self._ready()
        if self._address.is_loopback:
            _log.warning("the kubernetes service has no endpoints: %s is a loopback address", self._address.ip)
        await self.sync()
        await repeat(self.sync, every=PERIOD)

    async def _forget_earlier_run(self) -> None:
        if await self._reconciler.forget_earlier_run():
            _log.info("replaced the endpoint %s of the kubernetes service", self._address.ip)

    async def _ensure_service(self) -> None:
        port: Json = {"name": "https", "protocol": "TCP", "port": PORT, "targetPort": self._address.port}
        labels = {"provider": "kubernetes", "component": "apiserver"}
        spec: Json = {
            "ports": [port],
            "clusterIP": self._cluster_ip,
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "type": "ClusterIP",
        }
        await self._services.ensure(
            {
                "kind": "Service",
                "apiVersion": "v1",
                "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
                "spec": spec,
            }
        )
