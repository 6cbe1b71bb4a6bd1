"""Validation of the network data that a driver reports for a device."""

from __future__ import annotations

from pilothouse.kube.resource.limited_collections import validate_set
from pilothouse.machinery.field import Errors, Path, invalid, too_long
from pilothouse.machinery.objects import Json, items, text
from pilothouse.machinery.validation.addresses import format_ip, not_canonical, parse_cidr_sloppy

MAX_INTERFACE_NAME = 256
MAX_HARDWARE_ADDRESS = 128
MAX_IPS = 16

_MAPPED_PREFIX = 96


def validate_network_data(data: Json | None, path: Path) -> Errors:
    if data is None:
        return
    for field, limit in (("interfaceName", MAX_INTERFACE_NAME), ("hardwareAddress", MAX_HARDWARE_ADDRESS)):
        if len(text(data, field).encode()) > limit:
            yield too_long(path.child(field), limit)
    yield from validate_set(items(data, "ips"), MAX_IPS, _validate_interface_address, path=path.child("ips"))


def _validate_interface_address(value: str, path: Path) -> Errors:
    """An address together with the length of its network's prefix."""
    cidr = parse_cidr_sloppy(value)
    if cidr is None:
        why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, value, why)
        return
    address = format_ip(cidr.address)
    bits = cidr.bits - _MAPPED_PREFIX if ":" not in address and cidr.bits > 32 else cidr.bits
    canonical = f"{address}/{bits}"
    if value != canonical:
        yield not_canonical(path, value, canonical)
