"""A CIDR divided into equal subnets, allocated round-robin."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

from pilothouse.controllers.config import NodeIPAMConfig
from pilothouse.machinery.status_error import PilothouseError

Network: TypeAlias = IPv4Network | IPv6Network

_MOST_PARTS = 16
"""Maximum difference in bits between subnet mask and cluster mask."""


class CIDRsExhausted(PilothouseError):
    def __init__(self) -> None:
        super().__init__("CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range")


class CidrSet:
    def __init__(self, cidr: str, mask: int) -> None:
        """Raises ValueError if the CIDR cannot be divided by this mask."""
        self._whole = ip_network(cidr)
        bits = mask - self._whole.prefixlen
        if not 0 <= bits <= _MOST_PARTS or mask > self._whole.max_prefixlen:
            raise ValueError(f"{cidr} can not be divided into ranges with a mask of {mask} bits")
        self._mask = mask
        self._parts = 1 << bits
        self._used: set[int] = set()
        self._next = 0

    def allocate(self) -> Network:
        """Return a free subnet; recently released subnets come last. Raises CIDRsExhausted."""
        for step in range(self._parts):
            number = (self._next + step) % self._parts
            if number not in self._used:
                self._used.add(number)
                self._next = number + 1
                size = 1 << (self._whole.max_prefixlen - self._mask)
                return ip_network((int(self._whole.network_address) + number * size, self._mask))
        raise CIDRsExhausted

    def occupy(self, network: Network) -> None:
        self._used.update(self._numbers(network))

    def release(self, network: Network) -> None:
        self._used.difference_update(self._numbers(network))

    def _numbers(self, network: Network) -> range:
        """Return the indexes of subnets that overlap the network."""
        if network.version != self._whole.version or not network.overlaps(self._whole):
            return range(0)
        shift = self._whole.max_prefixlen - self._mask
        start = int(self._whole.network_address)
        first = max(int(network.network_address) - start, 0) >> shift
        last = (int(network.broadcast_address) - start) >> shift
        return range(first, min(last, self._parts - 1) + 1)


def cidr_sets(config: NodeIPAMConfig) -> list[CidrSet]:
    """Return the CIDR sets of the configuration. Raises ValueError."""
    masks = {4: config.node_cidr_mask_size_ipv4, 6: config.node_cidr_mask_size_ipv6}
    sets = [CidrSet(cidr, masks[ip_network(cidr).version]) for cidr in config.cluster_cidrs]
    for cidrs in sets:
        for service_cidr in config.service_cidrs:
            cidrs.occupy(ip_network(service_cidr))
    return sets
