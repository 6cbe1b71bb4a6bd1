"""Node ports: the bitmap is rebuilt from the services that exist.

A port that the bitmap has and no service has may belong to a write that is still under way. It is kept for some rounds,
and free again when it was found without a service each time.
"""

from __future__ import annotations

import logging

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.services.portallocator.allocator import PortAllocator, Snapshot
from pilothouse.kube.core.services.portallocator.port_set import PortSet
from pilothouse.kube.core.services.traits import health_check_port_of, ports_of
from pilothouse.kube.own_access import OwnAccess
from pilothouse.machinery.objects import Json, name_of, namespace_of

ROUNDS_BEFORE_CLEANUP = 3

_log = logging.getLogger(__name__)


class NodePortRepair:
    def __init__(self, services: RegistryStore, ports: PortAllocator) -> None:
        self._services = OwnAccess(services)
        self._ports = ports
        self._leaks: dict[int, int] = {}  # port → rounds for which it is still kept

    async def run_once(self) -> None:
        """Tried again when a port was allocated in between. Also what makes the bitmap at the very first start."""
        while not await self._run():
            continue

    async def _run(self) -> bool:
        seen = await self._ports.snapshot()
        rebuilt = PortSet(self._ports.ports)
        for service in await self._services.list():
            self._collect(service, seen.taken, rebuilt)
        self._keep_leaked(seen.taken, rebuilt)
        return await self._store(seen, rebuilt)

    def _collect(self, service: Json, stored: PortSet, rebuilt: PortSet) -> None:
        where = f"{namespace_of(service)}/{name_of(service)}"
        for port in used_ports(service):
            if port not in rebuilt.ports:
                valid = rebuilt.range_text
                _log.error(
                    "the port %d for service %s is not within the port range %s; please recreate", port, where, valid
                )
            elif port in rebuilt:
                _log.error(
                    "the node port %d for service %s was assigned to multiple services; please recreate", port, where
                )
            else:
                if port not in stored:
                    _log.warning("the node port %d for service %s is not allocated; repairing", port, where)
                rebuilt.add(port)
                self._leaks.pop(port, None)

    def _keep_leaked(self, stored: PortSet, rebuilt: PortSet) -> None:
        leaked = [port for port in stored if port in rebuilt.ports and port not in rebuilt]
        rounds = {port: self._leaks.get(port, ROUNDS_BEFORE_CLEANUP - 1) for port in leaked}
        self._leaks = {port: left - 1 for port, left in rounds.items() if left > 0}
        for port, left in rounds.items():
            if left > 0:
                rebuilt.add(port)
            else:
                _log.warning("the node port %d appears to have leaked: cleaning up", port)

    async def _store(self, seen: Snapshot, rebuilt: PortSet) -> bool:
        unchanged = seen.revision and seen.taken.encode() == rebuilt.encode()
        return bool(unchanged) or await self._ports.replace(seen, rebuilt)


def used_ports(service: Json) -> list[int]:
    """Its node ports. One that two protocols share counts once; one that the same protocol has twice counts twice."""
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
