"""Ports of containers, and references to them by number or name."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.validation.fields import port_num, required_one_of
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_valid_port_name

PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_container_ports(ports: Sequence[Json], path: Path) -> Errors:
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = path.index(position)
        if name := port.get("name"):
            yield from _validate_name(name, at.child("name"), names)
        if not port.get("containerPort"):
            yield required(at.child("containerPort"))
        else:
            yield from port_num(port["containerPort"], at.child("containerPort"))
        if port.get("hostPort"):
            yield from port_num(port["hostPort"], at.child("hostPort"))
        if (protocol := port.get("protocol")) not in PROTOCOLS:
            yield from required_one_of(protocol or "", at.child("protocol"), PROTOCOLS)


def _validate_name(name: str, path: Path, taken: set[str]) -> Errors:
    messages = is_valid_port_name(name)
    for message in messages:
        yield invalid(path, name, message)
    if messages:
        return
    if name in taken:
        yield duplicate(path, name)
    taken.add(name)
