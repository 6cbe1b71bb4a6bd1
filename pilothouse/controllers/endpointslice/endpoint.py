"""EndpointSlices and their endpoints: construction from pods, identity and comparison, labels, new slices."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Any, TypeAlias

from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, is_ready, node_name, running_containers
from pilothouse.machinery.objects import Json, items, labels_of, metadata, name_of, namespace_of, part, uid_of
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_ip_sloppy

EndpointKey: TypeAlias = tuple[Any, ...]
PortsKey: TypeAlias = tuple[tuple[Any, ...], ...]
ZONE_LABEL = "topology.kubernetes.io/zone"
_CONDITIONS = ("ready", "serving", "terminating")
IPV4, IPV6 = "IPv4", "IPv6"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
_RESERVED = frozenset({SERVICE_NAME, MANAGED_BY, HEADLESS})
"""Labels that are never propagated from services."""
_MAX_NAME = 253


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
        "addresses": pod_addresses(pod, family),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": reference_to_pod(pod),
    }
    zone = labels_of(node or {}).get(ZONE_LABEL)
    named = {"nodeName": node_name(pod), "zone": zone, "hostname": hostname_in(pod, service)}
    return endpoint | {name: value for name, value in named.items() if value}


def endpoint_ports(service: Json, pod: Json) -> list[Json]:
    """Return the service's ports on this pod; unresolvable named ports are skipped."""
    ports = []
    for port in items(service, "spec", "ports"):
        number = find_port(pod, port)
        if number is not None:
            endpoint_port = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
            protocol = port.get("appProtocol")
            ports.append(endpoint_port | ({} if protocol is None else {"appProtocol": protocol}))
    return sorted(ports, key=_port_key)


def publishes_not_ready(service: Json) -> bool:
    return bool(part(service, "spec").get("publishNotReadyAddresses"))


def _beyond_key(endpoint: Json) -> tuple[Any, ...]:
    conditions = endpoint.get("conditions") or {}
    target = {name: value for name, value in (endpoint.get("targetRef") or {}).items() if name != "resourceVersion"}
    return endpoint.get("nodeName"), endpoint.get("zone"), [conditions.get(name) for name in _CONDITIONS], target


def _port_key(port: Json) -> tuple[Any, ...]:
    return port.get("name") or "", port.get("port") or 0, port.get("protocol") or "TCP", port.get("appProtocol") or ""


def should_be_in_endpoints(pod: Json, *, include_terminating: bool) -> bool:
    status = pod.get("status") or {}
    if has_ended(pod) or not (status.get("podIP") or status.get("podIPs")):
        return False
    return include_terminating or not is_deleting(pod)


def pod_addresses(pod: Json, family: str) -> list[str]:
    """Return the pod's addresses of one IP family, in canonical form."""
    return [format_ip(address) for address in _ips(pod) if family_of(address) == family]


def family_of(address: Address) -> str:
    return IPV6 if isinstance(address, IPv6Address) and address.ipv4_mapped is None else IPV4


def family_of_text(address: str) -> str:
    """Return the family of an address; IPv4 for invalid text."""
    parsed = parse_ip_sloppy(address)
    return IPV4 if parsed is None else family_of(parsed)


def hostname_in(pod: Json, service: Json) -> str:
    """Return the pod's hostname in the service's domain; empty if none."""
    spec = pod.get("spec") or {}
    if spec.get("subdomain") == name_of(service) and namespace_of(service) == namespace_of(pod):
        return str(spec.get("hostname") or "")
    return ""


def find_port(pod: Json, service_port: Json) -> int | None:
    """Return the port number; a named port is resolved from the pod. None if unresolvable."""
    target = service_port.get("targetPort") or service_port.get("port") or 0
    if isinstance(target, int):
        return target
    for port in _ports(pod):
        if port.get("name") == target and _protocol(port) == _protocol(service_port):
            return int(port["containerPort"])
    return None


def reference_to_pod(pod: Json) -> Json:
    return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": metadata(pod).get("uid")}


def endpoint_state(pod: Json) -> tuple[Any, ...]:
    """Return a value that changes whenever endpoints of the pod may change."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    ips = [pod_ip.get("ip") for pod_ip in status.get("podIPs") or ()]
    names = node_name(pod), spec.get("hostname"), spec.get("subdomain")
    return is_deleting(pod), is_ready(pod), ips, has_ended(pod), names


def _ips(pod: Json) -> Iterator[Address]:
    for pod_ip in items(pod, "status", "podIPs"):
        if (address := parse_ip_sloppy(pod_ip.get("ip") or "")) is not None:
            yield address


def _ports(pod: Json) -> Iterator[Json]:
    """Yield ports of containers and sidecars."""
    for container in running_containers(pod.get("spec") or {}):
        yield from container.get("ports") or ()


def _protocol(port: Json) -> str:
    return port.get("protocol") or "TCP"


def manager_of(endpoint_slice: Json) -> str:
    return labels_of(endpoint_slice).get(MANAGED_BY, "")


def service_key(endpoint_slice: Json) -> str:
    """Return the key of the slice's service; empty without the service label."""
    name = labels_of(endpoint_slice).get(SERVICE_NAME)
    return f"{namespace_of(endpoint_slice)}/{name}" if name else ""


def is_headless(service: Json) -> bool:
    return part(service, "spec").get("clusterIP") in (None, "", "None")


def slice_labels(service: Json, controller: str) -> dict[str, str]:
    own = {HEADLESS: ""} if is_headless(service) else {}
    return handed_on(labels_of(service)) | own | {SERVICE_NAME: name_of(service), MANAGED_BY: controller}


def handed_on(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in _RESERVED}


def new_slice(owner: Json, kind: str, *, address_type: str, ports: list[Json], labels: dict[str, str]) -> Json:
    """Return a slice without endpoints, with a generateName, controlled by the owner."""
    reference = {
        "apiVersion": "v1",
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    name = name_of(owner)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": (f"{name}-" if len(name) < _MAX_NAME else name),
            "namespace": namespace_of(owner),
            "labels": labels,
            "ownerReferences": [reference],
        },
        "addressType": address_type,
        "ports": ports,
        "endpoints": [],
    }
