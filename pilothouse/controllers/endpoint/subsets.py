"""Canonical form and truncation of Endpoints subsets.

Addresses with the same ports form one subset, so equal endpoints yield equal subsets.

    [{10.0.0.1: 80} {10.0.0.1: 443} {10.0.0.2: 80}] → [{10.0.0.1: 443} {10.0.0.1 10.0.0.2: 80}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, text

MAX_CAPACITY = 1000

_AddressKey: TypeAlias = tuple[str, str]
_PortKey: TypeAlias = tuple[Any, ...]
_NO_PORT: _PortKey = ()


def repack(subsets: Iterable[Json]) -> list[Json]:
    """Return the subsets in canonical form. An address that is not ready for a port in one subset is not ready for that
    port."""
    addresses: dict[_AddressKey, Json] = {}
    ports: dict[_PortKey, Json] = {}
    readiness: dict[_PortKey, dict[_AddressKey, bool]] = {}
    for each in _flat(subsets):
        key, port = _address_key(each.address), _port_key(each.port)
        addresses.setdefault(key, each.address)
        ports.setdefault(port, each.port)
        of_port = readiness.setdefault(port, {})
        of_port[key] = of_port.get(key, True) and each.ready
    groups: dict[frozenset[tuple[_AddressKey, bool]], list[_PortKey]] = {}
    for port, of_port in readiness.items():
        groups.setdefault(frozenset(of_port.items()), []).append(port)
    made = [_subset(group, addresses, [ports[key] for key in sorted(keys) if key]) for group, keys in groups.items()]
    return sorted(made, key=_order)


def is_same(one: Iterable[Json], other: Iterable[Json]) -> bool:
    """Compare subsets, ignoring resourceVersions in targetRef."""
    return [_comparable(each) for each in one] == [_comparable(each) for each in other]


def number_of_addresses(subsets: Iterable[Json]) -> int:
    return sum(len(each.get("addresses") or ()) + len(each.get("notReadyAddresses") or ()) for each in subsets)


def truncated(subsets: list[Json]) -> list[Json]:
    """Return subsets truncated to the maximum number of addresses: ready first, proportionally per subset."""
    ready = sum(len(each.get("addresses") or ()) for each in subsets)
    name = "addresses" if ready > MAX_CAPACITY else "notReadyAddresses"
    room = MAX_CAPACITY if ready > MAX_CAPACITY else MAX_CAPACITY - ready
    total, left, cut = sum(len(each.get(name) or ()) for each in subsets), room, []
    for each in subsets:
        mine = each.get(name) or []
        taken = mine[: min(left, ceil(len(mine) / total * room))]
        left -= len(taken)
        rest = {field: value for field, value in each.items() if field not in (name, "notReadyAddresses")}
        cut.append(rest | ({name: taken} if taken else {}))
    return [each for each in cut if number_of_addresses([each])]


@dataclass(frozen=True, slots=True)
class _Flat:
    address: Json
    port: Json
    ready: bool


def _flat(subsets: Iterable[Json]) -> Iterator[_Flat]:
    for subset in subsets:
        ports: list[Json] = subset.get("ports") or [{}]
        for port in ports:
            yield from (_Flat(address, port, True) for address in subset.get("addresses") or ())
            yield from (_Flat(address, port, False) for address in subset.get("notReadyAddresses") or ())


def _subset(group: frozenset[tuple[_AddressKey, bool]], addresses: dict[_AddressKey, Json], ports: list[Json]) -> Json:
    parts = {
        "addresses": [addresses[key] for key, ready in sorted(group) if ready],
        "notReadyAddresses": [addresses[key] for key, ready in sorted(group) if not ready],
        "ports": ports,
    }
    return {name: value for name, value in parts.items() if value}


def _address_key(address: Json) -> _AddressKey:
    return address.get("ip") or "", text(address, "targetRef", "uid")


def _port_key(port: Json) -> _PortKey:
    if not port:
        return _NO_PORT
    return port.get("name") or "", port.get("port") or 0, port.get("protocol") or "TCP", port.get("appProtocol") or ""


def _order(subset: Json) -> tuple[Any, ...]:
    addresses = [*(subset.get("addresses") or ()), *(subset.get("notReadyAddresses") or ())]
    return [_port_key(port) for port in subset.get("ports") or ()], [_address_key(each) for each in addresses]


def _comparable(subset: Json) -> Json:
    found: Json = {"ports": [_port_key(port) for port in subset.get("ports") or ()]}
    for name in ("addresses", "notReadyAddresses"):
        found[name] = [_without_version(address) for address in subset.get(name) or ()]
    return found


def _without_version(address: Json) -> tuple[Any, ...]:
    target = {name: value for name, value in (address.get("targetRef") or {}).items() if name != "resourceVersion"}
    return address.get("ip"), address.get("hostname") or "", address.get("nodeName"), target
