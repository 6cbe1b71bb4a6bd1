"""Allocation and release of node ports for one write of a service."""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.port_set import PortAllocationError
from pilothouse.kube.core.services.portallocator import PortOperation
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError


async def allocate_for_create(service: Json, operation: PortOperation) -> None:
    """Raises Invalid, InternalError."""
    if traits.has_node_ports(service):
        # Ports with the same number, such as DNS over TCP and UDP, share a node port by default.
        chosen: dict[int, int] = {}
        for position, port in enumerate(traits.ports_of(service)):
            if not port.get("nodePort") and not traits.gets_node_ports(service):
                continue
            number = port.get("port") or 0
            if number not in chosen:
                chosen[number] = port["nodePort"] = await _first_node_port(service, position, operation)
            elif not port.get("nodePort"):
                port["nodePort"] = chosen[number]
            elif port["nodePort"] != chosen[number]:
                await _take(service, position, port["nodePort"], operation)
    if traits.needs_health_check(service):
        await _allocate_health_check(service, operation)


async def allocate_for_update(service: Json, old: Json, operation: PortOperation) -> None:
    """Raises Invalid, InternalError."""
    if traits.has_node_ports(service):
        await _update_node_ports(service, old, operation)
    elif traits.has_node_ports(old):
        for port in traits.node_ports_of(old):
            operation.give_up(port)
    if traits.needs_health_check(service) and not traits.needs_health_check(old):
        await _allocate_health_check(service, operation)
    elif traits.needs_health_check(old) and not traits.needs_health_check(service):
        operation.give_up(traits.health_check_port_of(old))


async def _first_node_port(service: Json, position: int, operation: PortOperation) -> int:
    number = traits.ports_of(service)[position].get("port") or 0
    named = (port.get("nodePort") or 0 for port in traits.ports_of(service) if (port.get("port") or 0) == number)
    requested = next(filter(None, named), 0)
    if not requested:
        return await _take_any(operation)
    await _take(service, position, requested, operation)
    return requested


async def _update_node_ports(service: Json, old: Json, operation: PortOperation) -> None:
    before = traits.node_ports_of(old)
    taken: set[int] = set(before)
    seen: set[tuple[str, int]] = set()
    for position, port in enumerate(traits.ports_of(service)):
        if not port.get("nodePort") and not traits.gets_node_ports(service):
            continue
        if not port.get("nodePort"):
            port["nodePort"] = await _take_any(operation)
        elif port["nodePort"] not in taken:
            await _take(service, position, port["nodePort"], operation)
            taken.add(port["nodePort"])
        key = (port.get("protocol") or "", port["nodePort"])
        if key in seen:
            raise StatusError(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
        seen.add(key)
    for number in before:
        if number not in traits.node_ports_of(service):
            operation.give_up(number)


async def _allocate_health_check(service: Json, operation: PortOperation) -> None:
    requested = traits.health_check_port_of(service)
    try:
        if requested:
            await operation.allocate(requested)
        else:
            service["spec"]["healthCheckNodePort"] = await operation.allocate_next()
    except PortAllocationError as error:
        noun = "requested HealthCheck NodePort" if requested else "a HealthCheck NodePort"
        raise InternalError.of(f"failed to allocate {noun} {requested}: {error}") from None


async def _take(service: Json, position: int, port: int, operation: PortOperation) -> None:
    try:
        await operation.allocate(port)
    except PortAllocationError as error:
        path = root("spec", "ports").index(position).child("nodePort")
        errors = [invalid(path, port, str(error))]
        raise Invalid.of(GroupKind("", "Service"), name_of(service), errors) from None


async def _take_any(operation: PortOperation) -> int:
    try:
        return await operation.allocate_next()
    except PortAllocationError as error:
        raise InternalError.of(f"failed to allocate a nodePort: {error}") from None
