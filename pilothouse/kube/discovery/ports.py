"""The ports of an endpoint slice: named, each name once."""

from __future__ import annotations

from pilothouse.kube.validation.fields import dns_label, qualified_name
from pilothouse.kube.validation.ports import PROTOCOLS
from pilothouse.machinery.field import Errors, Path, duplicate, not_supported, required, too_many
from pilothouse.machinery.objects import Json

MAX_PORTS = 20000


def validate_ports(ports: list[Json], path: Path) -> Errors:
    if len(ports) > MAX_PORTS:
        yield too_many(path, len(ports), MAX_PORTS)
        return
    seen: set[str] = set()
    for position, port in enumerate(ports):
        at, name = path.index(position), port.get("name") or ""
        if name:
            yield from dns_label(name, at.child("name"))
        if name in seen:
            yield duplicate(at.child("name"), name)
        seen.add(name)
        yield from _validate_protocols(port, at)


def _validate_protocols(port: Json, path: Path) -> Errors:
    if port.get("protocol") is None:
        yield required(path.child("protocol"))
    elif port["protocol"] not in PROTOCOLS:
        yield not_supported(path.child("protocol"), port["protocol"], PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from qualified_name(port["appProtocol"], path.child("appProtocol"))
