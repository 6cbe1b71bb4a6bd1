"""Cluster IPs: each address of a service has an IPAddress that points back to it, and no other IPAddress is ours.

service has the address   its IPAddress              then
yes                       points back                fine
yes                       is missing                 created
yes                       points to something else   made anew, unless it belongs to another service
no                        points to the service      deleted, once no write can be under way any more
"""

from __future__ import annotations

import logging
from datetime import timedelta

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.services.allocation.cluster_ips import canonical
from pilothouse.kube.core.services.ipallocator.address_range import AddressRange
from pilothouse.kube.core.services.ipallocator.allocator import MANAGER, new_ip_address
from pilothouse.kube.core.services.ipallocator.metrics import counted
from pilothouse.kube.core.services.traits import NO_ADDRESS, cluster_ip_of, cluster_ips_of
from pilothouse.kube.networking.ip_addresses import FAMILY_LABEL, MANAGED_BY_LABEL
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.kube.validation.addresses import ip_family
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.times import Clock, parse_time, system_clock
from pilothouse.machinery.validation.addresses import parse_ip_sloppy

WRITE_PATIENCE = timedelta(seconds=60)
"""No request lasts longer than this between taking an address and storing its service."""

_log = logging.getLogger(__name__)


class ClusterIPRepair:
    def __init__(
        self, services: RegistryStore, cidrs: RegistryStore, addresses: RegistryStore, *, clock: Clock = system_clock
    ) -> None:
        self._services = tracked_access(services)
        self._cidrs = tracked_access(cidrs)
        self._addresses = tracked_access(addresses)
        self._clock = clock

    async def run_once(self) -> None:
        # Addresses first: one that is taken after this list belongs to no service that it could miss.
        addresses = {name_of(address): address for address in await self._addresses.list()}
        ranges = [
            each
            for cidr in await self._cidrs.list()
            for text in cidr["spec"].get("cidrs") or ()
            if (each := AddressRange.of(text)) is not None
        ]
        services = {_identity(service): service for service in await self._services.list()}
        for service in services.values():
            for ip in _addresses_of(service):
                await self._repair_service(service, ip, known=addresses, services=services, ranges=ranges)
        for address in addresses.values():
            if labels_of(address).get(MANAGED_BY_LABEL) == MANAGER:
                await self._repair_address(address, services)
        taken = [parsed for name in addresses if (parsed := parse_ip_sloppy(name)) is not None]
        for each in ranges:
            counted(each, sum(address in each for address in taken))

    async def _repair_service(
        self, service: Json, ip: str, *, known: dict[str, Json], services: dict[str, Json], ranges: list[AddressRange]
    ) -> None:
        parsed, where = parse_ip_sloppy(ip), _identity(service)
        if parsed is None or not any(parsed in each for each in ranges):
            _log.error("the ClusterIP %s for Service %s is not within any service CIDR; please recreate", ip, where)
            return
        # Another server may have taken it, and made the service, while they were listed.
        address = known.get(ip) or await self._addresses.get(ip)
        if address is None:
            _log.warning("the ClusterIP %s for Service %s is not allocated; repairing", ip, where)
            await self._create(ip, service)
            return
        owner = services.get(_parent(address))
        if _parent(address) != where and owner is not None and ip in _addresses_of(owner):
            _log.error(
                "the ClusterIP %s for Service %s was assigned to %s, too; please recreate", ip, where, _identity(owner)
            )
        elif _parent(address) != where or not _is_labelled(address):
            _log.warning("the ClusterIP %s for Service %s has a wrong reference; repairing", ip, where)
            await self._addresses.delete(ip)
            await self._create(ip, service)

    async def _repair_address(self, address: Json, services: dict[str, Json]) -> None:
        owner = services.get(_parent(address))
        if owner is not None and name_of(address) in _addresses_of(owner):
            return
        created = parse_time(metadata(address).get("creationTimestamp") or "")
        points_to_service = bool(_parent(address))
        if points_to_service and created is not None and self._clock() - created < WRITE_PATIENCE:
            return
        _log.warning("IPAddress %s appears to have leaked: cleaning up", name_of(address))
        await self._addresses.delete(name_of(address))

    async def _create(self, ip: str, service: Json) -> None:
        try:
            await self._addresses.create(new_ip_address(ip, service))
        except AlreadyExists:
            return


def _identity(service: Json) -> str:
    return f"{namespace_of(service)}/{name_of(service)}"


def _parent(address: Json) -> str:
    """The identity of the service that an address points to; empty when it points to something else."""
    parent = address["spec"].get("parentRef") or {}
    if parent.get("group") or parent.get("resource") != "services":
        return ""
    return f"{parent.get('namespace') or ''}/{parent.get('name') or ''}"


def _addresses_of(service: Json) -> list[str]:
    if cluster_ip_of(service) in ("", NO_ADDRESS):
        return []
    return [canonical(ip) for ip in cluster_ips_of(service) or [cluster_ip_of(service)]]


def _is_labelled(address: Json) -> bool:
    labels = labels_of(address)
    return labels.get(MANAGED_BY_LABEL) == MANAGER and labels.get(FAMILY_LABEL) == ip_family(name_of(address))
