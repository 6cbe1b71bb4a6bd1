"""Endpoints of slices: construction from pods, identity and comparison."""

from __future__ import annotations

from typing import Any, TypeAlias

from pilothouse.controllers.endpointslice import pods
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import is_ready, node_name
from pilothouse.machinery.objects import Json, items, labels_of, part

EndpointKey: TypeAlias = tuple[Any, ...]
PortsKey: TypeAlias = tuple[tuple[Any, ...], ...]
ZONE_LABEL = "topology.kubernetes.io/zone"
_CONDITIONS = ("ready", "serving", "terminating")


def endpoint_key(endpoint: Json) -> EndpointKey:
    """Return the identity of an endpoint, which is stable across updates."""
    target = endpoint.get("targetRef") or {}
    addresses = tuple(sorted(endpoint.get("addresses") or ()))
    return addresses, endpoint.get("hostname") or "", target.get("namespace") or "", target.get("name") or ""


def is_same_beyond_key(one: Json, other: Json) -> bool:
    """Compare two endpoints, ignoring targetRef.resourceVersion, which changes with every heartbeat, and hints, which
    are set later."""
    return _beyond_key(one) == _beyond_key(other)


def is_endpoint_ready(endpoint: Json) -> bool:
    return part(endpoint, "conditions").get("ready") is True


def ports_key(ports: list[Json]) -> PortsKey:
    """Return a key that is independent of port order."""
    return tuple(sorted(_port_key(port) for port in ports))


def pod_endpoint(pod: Json, *, node: Json | None, service: Json, family: str) -> Json:
    """Return the endpoint of a pod; without addresses if the pod has none in the family."""
    serving, terminating = is_ready(pod), is_deleting(pod)
    ready = publishes_not_ready(service) or (serving and not terminating)
    endpoint: Json = {
        "addresses": pods.addresses(pod, family),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": pods.reference_to_pod(pod),
    }
    zone = labels_of(node or {}).get(ZONE_LABEL)
    named = {"nodeName": node_name(pod), "zone": zone, "hostname": pods.hostname_in(pod, service)}
    return endpoint | {name: value for name, value in named.items() if value}


def endpoint_ports(service: Json, pod: Json) -> list[Json]:
    """Return the service's ports on this pod; unresolvable named ports are skipped."""
    found = []
    for port in items(service, "spec", "ports"):
        number = pods.find_port(pod, port)
        if number is not None:
            made = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
            protocol = port.get("appProtocol")
            found.append(made | ({} if protocol is None else {"appProtocol": protocol}))
    return sorted(found, key=_port_key)


def publishes_not_ready(service: Json) -> bool:
    return bool(part(service, "spec").get("publishNotReadyAddresses"))


def _beyond_key(endpoint: Json) -> tuple[Any, ...]:
    conditions = endpoint.get("conditions") or {}
    target = {name: value for name, value in (endpoint.get("targetRef") or {}).items() if name != "resourceVersion"}
    return endpoint.get("nodeName"), endpoint.get("zone"), [conditions.get(name) for name in _CONDITIONS], target


def _port_key(port: Json) -> tuple[Any, ...]:
    return port.get("name") or "", port.get("port") or 0, port.get("protocol") or "TCP", port.get("appProtocol") or ""
