"""Hooks around writes of services: allocate addresses and ports before validation and storage.

A failed write releases its allocations. A write with unknown outcome, because the request was cancelled, releases
nothing: a leaked address is harmless and found by the repair, an address of two services is not.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Hooks
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.allocation.cluster_ips import ClusterIPOperation, canonical
from pilothouse.kube.core.services.allocation.ip_families import ClusterFamilies, init_ip_families
from pilothouse.kube.core.services.allocation.node_ports import allocate_for_create, allocate_for_update
from pilothouse.kube.core.services.inference import default_on_read, normalize_cluster_ips, patch_allocated_values
from pilothouse.kube.core.services.ipallocator import ServiceIPAllocator
from pilothouse.kube.core.services.portallocator import PortAllocator, PortOperation, release_ports
from pilothouse.kube.served import tracked_access
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Operation:
    """Allocations and releases of one write."""

    ips: ClusterIPOperation
    ports: PortOperation


class ReleaseHooks(Hooks):
    """Releases everything when a service is removed. Sufficient for status updates."""

    def __init__(
        self, families: ClusterFamilies, ips: ServiceIPAllocator, ports: PortAllocator, endpoints: RegistryStore
    ) -> None:
        self.families = families
        self.ips = ips
        self.ports = ports
        self._endpoints = tracked_access(endpoints)

    async def after_delete(self, deleted: StoredObject, *, dry_run: bool) -> None:
        if dry_run:
            return
        service = deleted.parse()
        default_on_read(service, self.families.default)
        # A new service of the same name must not inherit the endpoints.
        try:
            await self._endpoints.delete(name_of(service), namespace=namespace_of(service))
        except StatusError as error:
            _log.error("delete service endpoints %s/%s failed: %s", namespace_of(service), name_of(service), error)
        if traits.needs_cluster_ip(service) and traits.cluster_ips_of(service)[:1] != [traits.NO_ADDRESS]:
            for ip in traits.cluster_ips_of(service):
                await self.ips.release(canonical(ip))
        ports = traits.node_ports_of(service)
        if traits.needs_health_check(service) and traits.health_check_port_of(service):
            ports.append(traits.health_check_port_of(service))
        await release_ports(self.ports, ports)


class AllocationHooks(ReleaseHooks):
    """Allocates on create and update, and releases on removal."""

    @asynccontextmanager
    async def around_create(self, obj: Json, *, dry_run: bool) -> AsyncIterator[None]:
        normalize_cluster_ips(obj, None)
        init_ip_families(obj, None, self.families)
        async with self._operation(dry_run=dry_run) as operation:
            await operation.ips.create(obj)
            await allocate_for_create(obj, operation.ports)
            yield

    @asynccontextmanager
    async def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AsyncIterator[None]:
        default_on_read(old, self.families.default)
        patch_allocated_values(obj, old)
        normalize_cluster_ips(obj, old)
        init_ip_families(obj, old, self.families)
        async with self._operation(dry_run=dry_run) as operation:
            await operation.ips.update(obj, old)
            await allocate_for_update(obj, old, operation.ports)
            yield

    @asynccontextmanager
    async def _operation(self, *, dry_run: bool) -> AsyncIterator[_Operation]:
        ips, ports = ClusterIPOperation(self.ips, dry_run=dry_run), PortOperation(self.ports, dry_run=dry_run)
        try:
            yield _Operation(ips, ports)
        except Exception:
            await ips.revert()
            await ports.revert()
            raise
        await ips.commit()
        await ports.commit()
