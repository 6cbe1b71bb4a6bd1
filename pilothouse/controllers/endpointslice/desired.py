"""Desired endpoints of a service, grouped by port set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pilothouse.client.cache.indexer import Indexer
from pilothouse.controllers.endpointslice import pods
from pilothouse.controllers.endpointslice.endpoint import (
    EndpointKey,
    PortsKey,
    endpoint_key,
    endpoint_ports,
    pod_endpoint,
    ports_key,
    publishes_not_ready,
)
from pilothouse.controllers.endpointslice.pods import IPV4, IPV6
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json


@dataclass(slots=True)
class DesiredEndpoints:
    groups: dict[PortsKey, dict[EndpointKey, Json]] = field(default_factory=dict)
    """Endpoints by port set: a named port can resolve to different numbers per pod, or to none."""
    ports: dict[PortsKey, list[Json]] = field(default_factory=dict)


def address_types(service: Json) -> tuple[str, ...]:
    """Return the service's IP families. Without ipFamilies: the family of clusterIP, or both for a headless service."""
    spec = service.get("spec") or {}
    if families := tuple(family for family in spec.get("ipFamilies") or () if family in (IPV4, IPV6)):
        return families
    address = spec.get("clusterIP")
    return (pods.family_of_text(address),) if address and address != "None" else (IPV4, IPV6)


def countable_pods(selected: Iterable[Json]) -> list[Json]:
    return [pod for pod in selected if pods.should_be_in_endpoints(pod, include_terminating=True)]


def missing_nodes(service: Json, counted: Iterable[Json], nodes: Indexer) -> set[str]:
    """Return referenced nodes that do not exist; empty if the service publishes not-ready addresses."""
    if publishes_not_ready(service):
        return set()
    return {name for name in map(node_name, counted) if name not in nodes}


async def desired_endpoints(service: Json, counted: Sequence[Json], nodes: Indexer, family: str) -> DesiredEndpoints:
    desired = DesiredEndpoints()
    async for pod in yield_periodically(counted):
        ports = endpoint_ports(service, pod)
        group = desired.groups.setdefault(ports_key(ports), {})
        desired.ports.setdefault(ports_key(ports), ports)
        endpoint = pod_endpoint(pod, node=nodes.get_by_key(node_name(pod)), service=service, family=family)
        if endpoint["addresses"]:
            group[endpoint_key(endpoint)] = endpoint
    return desired
