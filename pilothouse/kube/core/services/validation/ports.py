"""The ports of a service: each by itself, and none of them twice."""

from __future__ import annotations

from pilothouse.kube.core.services.traits import CLUSTER_IP, ports_of, type_of
from pilothouse.kube.validation.fields import (
    PROTOCOLS,
    dns_label,
    port_num,
    port_num_or_name,
    qualified_name,
    required_one_of,
)
from pilothouse.machinery.field import Errors, duplicate, forbidden, required, root
from pilothouse.machinery.objects import Json

_PORTS = root("spec", "ports")


def validate_ports(service: Json) -> Errors:
    ports = ports_of(service)
    names: set[str] = set()
    for position, port in enumerate(ports):
        path, name = _PORTS.index(position), port.get("name") or ""
        if name:
            yield from dns_label(name, path.child("name"))
            if name in names:
                yield duplicate(path.child("name"), name)
            names.add(name)
        elif len(ports) > 1:
            yield required(path.child("name"))
        yield from port_num(port.get("port") or 0, path.child("port"))
        yield from required_one_of(port.get("protocol") or "", path.child("protocol"), PROTOCOLS)
        yield from port_num_or_name(port.get("targetPort", 0), path.child("targetPort"))
        if port.get("appProtocol") is not None:
            yield from qualified_name(port["appProtocol"], path.child("appProtocol"))


def validate_port_uniqueness(service: Json) -> Errors:
    """A port or node port may be used once with each protocol; a ClusterIP service has no node ports at all."""
    ports = ports_of(service)
    if type_of(service) == CLUSTER_IP:
        for position, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                yield forbidden(_PORTS.index(position).child("nodePort"), why)
    yield from _validate_unique_node_ports(ports)
    seen: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in seen:
            yield duplicate(_PORTS.index(position), _printed(*key))
        seen.add(key)


def _validate_unique_node_ports(ports: list[Json]) -> Errors:
    seen: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        if not port.get("nodePort"):
            continue
        key = (port.get("protocol") or "", port["nodePort"])
        if key in seen:
            yield duplicate(_PORTS.index(position).child("nodePort"), port["nodePort"])
        seen.add(key)


def _printed(protocol: str, port: int) -> Json:
    """A port of which only these two are set, as messages show it."""
    return {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": port, "TargetPort": 0, "NodePort": 0}
