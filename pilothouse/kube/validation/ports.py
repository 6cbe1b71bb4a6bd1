"""Ports by number or by name."""

from __future__ import annotations

from pilothouse.kube.validation.fields import follow
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.validation.names import is_valid_port_name
from pilothouse.machinery.validation.numbers import is_valid_port_num

PROTOCOLS = ("SCTP", "TCP", "UDP")


def port_num(port: int, path: Path) -> Errors:
    for message in is_valid_port_num(port):
        yield invalid(path, port, message)


def port_num_or_name(port: int | str, path: Path) -> Errors:
    return follow(is_valid_port_name, port, path) if isinstance(port, str) else port_num(port, path)
