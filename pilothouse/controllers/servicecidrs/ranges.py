"""Containment and overlap of ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from pilothouse.machinery.objects import Json, labels_of, name_of

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

_MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR = "ipallocator.k8s.io"
_PARSED = 1024


def networks_of(cidr: Json) -> list[Network]:
    return [network for text in cidr["spec"].get("cidrs") or () if (network := _network(text)) is not None]


@lru_cache(_PARSED)
def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def address_of(ip: Json) -> Address | None:
    """Return the address of an IPAddress managed by the service allocator; otherwise None."""
    if labels_of(ip).get(_MANAGED_BY) != _ALLOCATOR:
        return None
    try:
        return ip_address(name_of(ip))
    except ValueError:
        return None


def containing(address: Address, cidrs: Iterable[Json]) -> list[str]:
    """Return the names of ServiceCIDRs that contain the address."""
    return [name_of(each) for each in cidrs if any(address in network for network in networks_of(each))]


def overlapping(cidr: Json, cidrs: Iterable[Json]) -> list[str]:
    """Return the names of ServiceCIDRs that overlap `cidr`."""
    mine = networks_of(cidr)
    return [name_of(each) for each in cidrs if any(a.overlaps(b) for a in mine for b in networks_of(each))]


def is_needed(cidr: Json, cidrs: list[Json], ips: Iterable[Json]) -> bool:
    """Return whether an allocated address is in no other ServiceCIDR."""
    if all(_parents(network, cidr, cidrs) for network in networks_of(cidr)):
        return False
    used = (address for ip in ips if (address := address_of(ip)) is not None)
    return any(containing(address, cidrs) == [name_of(cidr)] for address in used)


def _parents(network: Network, cidr: Json, cidrs: list[Json]) -> list[str]:
    others = (each for each in cidrs if name_of(each) != name_of(cidr))
    return [
        name_of(each)
        for each in others
        if any(
            (outer.version == network.version and outer.overlaps(network) and outer.prefixlen <= network.prefixlen)
            for outer in networks_of(each)
        )
    ]
