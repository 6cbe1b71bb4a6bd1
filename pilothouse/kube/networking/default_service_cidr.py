"""The ServiceCIDR `kubernetes`, created from --service-cluster-ip-range.

An existing ServiceCIDR gains a second family at most. A mismatch with the flag is left unchanged.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS, ServiceCIDRStatusStrategy
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.addresses import parse_cidr_sloppy

NAME = "kubernetes"
PERIOD = 10.0
FIRST_PERIOD = 0.1

_log = logging.getLogger(__name__)


class DefaultServiceCIDR:
    def __init__(self, registry: RegistryStore, cidrs: tuple[str, ...]) -> None:
        self.known = asyncio.Event()
        """Set once the ServiceCIDR exists."""
        self._cidrs = [cidr.network for cidr in map(parse_cidr_sloppy, cidrs) if cidr is not None]
        self._objects = tracked_access(registry)
        self._statuses = tracked_access(registry.with_strategy(ServiceCIDRStatusStrategy()), subresource="status")

    async def start(self, context: HookContext) -> None:
        """Returns when the ServiceCIDR exists."""
        context.spawn(self._keep(), name="kubernetes-service-cidr-controller")
        await self.known.wait()

    async def sync(self) -> None:
        """Raises StatusError."""
        current = await self._objects.get(NAME)
        if current is None:
            await self._create()
            current = await self._objects.get(NAME)
        if current is None or is_deleting(current):
            return
        cidrs = current["spec"].get("cidrs") or []
        if len(self._cidrs) == 2 and cidrs == self._cidrs[:1]:
            await self._objects.update(current, self._add_second_family)
        elif cidrs != self._cidrs:
            _log.warning("the default ServiceCIDR %s does not match the flag's %s", cidrs, self._cidrs)
        elif not _is_judged(current):
            await self._statuses.update(current, _set_ready)

    async def _keep(self) -> None:
        while True:
            try:
                await self.sync()
                self.known.set()
            except StatusError as error:
                _log.error("error trying to sync the default ServiceCIDR: %s", error)
            await asyncio.sleep(PERIOD if self.known.is_set() else FIRST_PERIOD)

    async def _create(self) -> None:
        kind = SERVICE_CIDRS.kind
        obj: Json = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": NAME}}
        try:
            await self._objects.create(obj | {"spec": {"cidrs": self._cidrs}, "status": {}})
        except AlreadyExists:
            return

    def _add_second_family(self, current: Json) -> None:
        current["spec"]["cidrs"] = self._cidrs


def _is_judged(cidr: Json) -> bool:
    """Report whether the ServiceCIDR has a Ready condition."""
    conditions = (cidr.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") != "Unknown" for condition in conditions)


def _set_ready(cidr: Json) -> None:
    conditions = (cidr.get("status") or {}).get("conditions") or []
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now(),
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    cidr["status"] = {
        "conditions": [*(condition for condition in conditions if condition.get("type") != "Ready"), ready]
    }
