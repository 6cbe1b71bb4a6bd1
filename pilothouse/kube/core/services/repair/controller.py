"""Runs the repairs: once before the server is ready, and then every few minutes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.kube.core.services.portallocator.errors import PortAllocationError
from pilothouse.kube.core.services.repair.cluster_ips import ClusterIPRepair
from pilothouse.kube.core.services.repair.node_ports import NodePortRepair
from pilothouse.machinery.status_error import StatusError

PERIOD = 180.0

_log = logging.getLogger(__name__)


class ServiceRepair:
    """`ranges_known` returns when the default ServiceCIDR exists: without it every address would seem out of range."""

    def __init__(
        self, ips: ClusterIPRepair, ports: NodePortRepair, *, ranges_known: Callable[[], Awaitable[object]]
    ) -> None:
        self._ips = ips
        self._ports = ports
        self._ranges_known = ranges_known

    async def start(self, context: HookContext) -> None:
        await self._ports.run_once()
        await self._ranges_known()
        await self._ips.run_once()
        context.spawn(self._keep(), name="service-ip-repair-controllers")

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            for repair in (self._ports, self._ips):
                try:
                    await repair.run_once()
                except (StatusError, StorageError, PortAllocationError) as error:
                    _log.error("repairing the addresses and ports of services failed: %s", error)
