"""Node ports: the bitmap is rebuilt from the services that exist.

A port that the bitmap has and no service has may belong to a write that is still under way. It is kept for some rounds,
and free again when it was found without a service each time.
"""

from __future__ import annotations

import logging

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.kube.core.services.portallocator.allocator import PortAllocator
from pilothouse.kube.core.services.portallocator.errors import PortAllocationError
from pilothouse.kube.core.services.portallocator.metrics import REPAIR_ERRORS, REPAIR_PORT_ERRORS, counted
from pilothouse.kube.core.services.portallocator.port_set import PortSet
from pilothouse.kube.core.services.traits import health_check_port_of, ports_of
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

ROUNDS_BEFORE_CLEANUP = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem that a port of a service can have, as the metric and the log name it."""

    type: str
    text: str


_OUT_OF_RANGE = _Problem("outOfRange", "is not within the port range; please recreate")
_DUPLICATE = _Problem("duplicate", "was assigned to multiple services; please recreate")
_NOT_ALLOCATED = _Problem("repair", "is not allocated; repairing")


class NodePortRepair:
    def __init__(self, services: RegistryStore, ports: PortAllocator) -> None:
        self._services = tracked_access(services)
        self._ports = ports
        self._leaks: dict[int, int] = {}  # port → rounds for which it is still kept

    async def run_once(self) -> None:
        """Tried again when a port was allocated in between. Also what makes the bitmap at the very first start."""
        try:
            while not await self._run():
                continue
        except (StatusError, StorageError, PortAllocationError):
            REPAIR_ERRORS.inc()
            raise

    async def _run(self) -> bool:
        seen = await self._ports.snapshot()
        rebuilt = PortSet(self._ports.ports)
        for service in await self._services.list():
            for port in used_ports(service):
                problem = _problem(port, seen.taken, rebuilt)
                if problem is not None:
                    REPAIR_PORT_ERRORS.labels(problem.type).inc()
                    where = f"{namespace_of(service)}/{name_of(service)}"
                    _log.warning("the node port %d for service %s %s", port, where, problem.text)
                if problem in (None, _NOT_ALLOCATED):
                    rebuilt.add(port)
                    self._leaks.pop(port, None)
        self._keep_leaked(seen.taken, rebuilt)
        if seen.revision and seen.taken.encode() == rebuilt.encode():
            counted(rebuilt)
            return True
        return await self._ports.replace(seen, rebuilt)

    def _keep_leaked(self, stored: PortSet, rebuilt: PortSet) -> None:
        leaked = [port for port in stored if port in rebuilt.ports and port not in rebuilt]
        rounds = {port: self._leaks.get(port, ROUNDS_BEFORE_CLEANUP - 1) for port in leaked}
        self._leaks = {port: left - 1 for port, left in rounds.items() if left > 0}
        for port, left in rounds.items():
            if left > 0:
                rebuilt.add(port)
            else:
                REPAIR_PORT_ERRORS.labels("leak").inc()
                _log.warning("the node port %d appears to have leaked: cleaning up", port)


def used_ports(service: Json) -> list[int]:
    """Return a service's node ports. One that two protocols share counts once, one that a protocol has twice, twice."""
    used: list[int] = []
    seen: set[tuple[int, str]] = set()
    for port in ports_of(service):
        number, protocol = port.get("nodePort") or 0, port.get("protocol") or ""
        if number and (number not in used or (number, protocol) in seen):
            used.append(number)
        seen.add((number, protocol))
    health = health_check_port_of(service)
    if health and (health not in used or (health, "TCP") in seen):
        used.append(health)
    return used


def _problem(port: int, stored: PortSet, rebuilt: PortSet) -> _Problem | None:
    if port not in rebuilt.ports:
        return _OUT_OF_RANGE
    if port in rebuilt:
        return _DUPLICATE
    return None if port in stored else _NOT_ALLOCATED
