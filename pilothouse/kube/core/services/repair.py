"""Repair of cluster IPs and node ports: once before the server is ready, then periodically.

Cluster IPs: each address of a service has an IPAddress with a reference to the service.

    service has the address   IPAddress                     action
    yes                       refers to the service         none
    yes                       missing                       create
    yes                       refers to another object      recreate, unless the owner is another service
    no                        refers to the service         delete, once no write can be in progress

Node ports: the bitmap is rebuilt from the existing services. A port without service may belong to a write in progress:
the port is released after several rounds without service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.kube.core.services import portallocator, traits
from pilothouse.kube.core.services.allocation.cluster_ips import canonical
from pilothouse.kube.core.services.ipallocator import MANAGER, AddressRange, new_ip_address, set_allocated_ips
from pilothouse.kube.core.services.port_set import PortAllocationError, PortSet
from pilothouse.kube.networking.ip_addresses import FAMILY_LABEL, MANAGED_BY_LABEL
from pilothouse.kube.served import tracked_access
from pilothouse.kube.validation.addresses import ip_family
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import Clock, parse_time, system_clock
from pilothouse.machinery.validation.addresses import parse_ip_sloppy

PERIOD = 180.0

_log = logging.getLogger(__name__)


class ServiceRepair:
    """`ranges_known` returns when the default ServiceCIDR exists. Before, every address would seem out of range."""

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


WRITE_PATIENCE = timedelta(seconds=60)
"""Upper bound of the time between the allocation of an address and the storage of the service."""


class ClusterIPRepair:
    def __init__(
        self, services: RegistryStore, cidrs: RegistryStore, addresses: RegistryStore, *, clock: Clock = system_clock
    ) -> None:
        self._services = tracked_access(services)
        self._cidrs = tracked_access(cidrs)
        self._addresses = tracked_access(addresses)
        self._clock = clock

    async def run_once(self) -> None:
        # List addresses before services: the service of each listed address is then listed too.
        addresses = {name_of(address): address for address in await self._addresses.list()}
        ranges = [
            range_
            for cidr in await self._cidrs.list()
            for text in cidr["spec"].get("cidrs") or ()
            if (range_ := AddressRange.of(text)) is not None
        ]
        services = {_identity(service): service for service in await self._services.list()}
        for service in services.values():
            for ip in _addresses_of(service):
                await self._repair_service(service, ip, known=addresses, services=services, ranges=ranges)
        for address in addresses.values():
            if labels_of(address).get(MANAGED_BY_LABEL) == MANAGER:
                await self._repair_address(address, services)
        allocated = [parsed for name in addresses if (parsed := parse_ip_sloppy(name)) is not None]
        for range_ in ranges:
            set_allocated_ips(range_, sum(address in range_ for address in allocated))

    async def _repair_service(
        self, service: Json, ip: str, *, known: dict[str, Json], services: dict[str, Json], ranges: list[AddressRange]
    ) -> None:
        parsed, where = parse_ip_sloppy(ip), _identity(service)
        if parsed is None or not any(parsed in range_ for range_ in ranges):
            _log.error("the ClusterIP %s for Service %s is not within any service CIDR; please recreate", ip, where)
            return
        # Another server may have created both address and service between the two lists.
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
    """Return the identity of the parent service, empty for another kind of parent."""
    parent = address["spec"].get("parentRef") or {}
    if parent.get("group") or parent.get("resource") != "services":
        return ""
    return f"{parent.get('namespace') or ''}/{parent.get('name') or ''}"


def _addresses_of(service: Json) -> list[str]:
    if traits.cluster_ip_of(service) in ("", traits.NO_ADDRESS):
        return []
    return [canonical(ip) for ip in traits.cluster_ips_of(service) or [traits.cluster_ip_of(service)]]


def _is_labelled(address: Json) -> bool:
    labels = labels_of(address)
    return labels.get(MANAGED_BY_LABEL) == MANAGER and labels.get(FAMILY_LABEL) == ip_family(name_of(address))


ROUNDS_BEFORE_CLEANUP = 3


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem of a service's port: metric label and log text."""

    type: str
    text: str


_OUT_OF_RANGE = _Problem("outOfRange", "is not within the port range; please recreate")
_DUPLICATE = _Problem("duplicate", "was assigned to multiple services; please recreate")
_NOT_ALLOCATED = _Problem("repair", "is not allocated; repairing")


class NodePortRepair:
    def __init__(self, services: RegistryStore, ports: portallocator.PortAllocator) -> None:
        self._services = tracked_access(services)
        self._ports = ports
        self._leaks: dict[int, int] = {}  # port → rounds until release

    async def run_once(self) -> None:
        """Rebuild the bitmap, retrying on conflicts. Creates the bitmap on the first start."""
        try:
            while not await self._run():
                continue
        except (StatusError, StorageError, PortAllocationError):
            portallocator.REPAIR_ERRORS.inc()
            raise

    async def _run(self) -> bool:
        snapshot = await self._ports.snapshot()
        rebuilt = PortSet(self._ports.ports)
        for service in await self._services.list():
            for port in used_ports(service):
                problem: _Problem | None = None
                if port not in rebuilt.ports:
                    problem = _OUT_OF_RANGE
                elif port in rebuilt:
                    problem = _DUPLICATE
                elif port not in snapshot.taken:
                    problem = _NOT_ALLOCATED
                if problem is not None:
                    portallocator.REPAIR_PORT_ERRORS.labels(problem.type).inc()
                    where = f"{namespace_of(service)}/{name_of(service)}"
                    _log.warning("the node port %d for service %s %s", port, where, problem.text)
                if problem in (None, _NOT_ALLOCATED):
                    rebuilt.add(port)
                    self._leaks.pop(port, None)
        self._keep_leaked(snapshot.taken, rebuilt)
        if snapshot.revision and snapshot.taken.encode() == rebuilt.encode():
            portallocator.set_allocated_ports(rebuilt)
            return True
        return await self._ports.replace(snapshot, rebuilt)

    def _keep_leaked(self, stored: PortSet, rebuilt: PortSet) -> None:
        leaked = [port for port in stored if port in rebuilt.ports and port not in rebuilt]
        rounds = {port: self._leaks.get(port, ROUNDS_BEFORE_CLEANUP - 1) for port in leaked}
        self._leaks = {port: rounds_left - 1 for port, rounds_left in rounds.items() if rounds_left > 0}
        for port, left in rounds.items():
            if left > 0:
                rebuilt.add(port)
            else:
                portallocator.REPAIR_PORT_ERRORS.labels("leak").inc()
                _log.warning("the node port %d appears to have leaked: cleaning up", port)


def used_ports(service: Json) -> list[int]:
    """Return the node ports of a service. Protocols share a port; a duplicate within one protocol is listed twice."""
    used: list[int] = []
    seen: set[tuple[int, str]] = set()
    for port in traits.ports_of(service):
        number, protocol = port.get("nodePort") or 0, port.get("protocol") or ""
        if number and (number not in used or (number, protocol) in seen):
            used.append(number)
        seen.add((number, protocol))
    health = traits.health_check_port_of(service)
    if health and (health not in used or (health, "TCP") in seen):
        used.append(health)
    return used
