"""Pod properties used in endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Any

from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, is_ready, node_name, running_containers
from pilothouse.machinery.objects import Json, items, metadata, name_of, namespace_of
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_ip_sloppy

IPV4, IPV6 = "IPv4", "IPv6"


def should_be_in_endpoints(pod: Json, *, include_terminating: bool) -> bool:
    status = pod.get("status") or {}
    if has_ended(pod) or not (status.get("podIP") or status.get("podIPs")):
        return False
    return include_terminating or not is_deleting(pod)


def addresses(pod: Json, family: str) -> list[str]:
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


def state(pod: Json) -> tuple[Any, ...]:
    """Return a value that changes whenever endpoints of the pod may change."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    ips = [each.get("ip") for each in status.get("podIPs") or ()]
    names = node_name(pod), spec.get("hostname"), spec.get("subdomain")
    return is_deleting(pod), is_ready(pod), ips, has_ended(pod), names


def _ips(pod: Json) -> Iterator[Address]:
    for each in items(pod, "status", "podIPs"):
        if (address := parse_ip_sloppy(each.get("ip") or "")) is not None:
            yield address


def _ports(pod: Json) -> Iterator[Json]:
    """Yield ports of containers and sidecars."""
    for container in running_containers(pod.get("spec") or {}):
        yield from container.get("ports") or ()


def _protocol(port: Json) -> str:
    return port.get("protocol") or "TCP"
