"""Address allocation: a pod range and an address per node, an address per pod."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from pilothouse.machinery.objects import Json, name_of, part, text
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.node_object import address_of, cidr_of

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

_RESERVED = 2
"""Network address and gateway."""


class NoMoreAddresses(Exception):
    """The range is exhausted."""


class Addresses:
    """Addresses of one range. Released addresses are reused last."""

    def __init__(self, cidr: str) -> None:
        """Raises ValueError for an invalid range."""
        network = ip_network(cidr)
        self._first, self._size = int(network.network_address), network.num_addresses
        self._kind: type[Address] = IPv4Address if network.version == 4 else IPv6Address
        self._next = _RESERVED
        self._taken: set[int] = set()

    def take(self) -> str:
        """Allocate an address. Raises NoMoreAddresses."""
        for offset in range(self._size):
            number = (self._next + offset) % self._size
            # The last address of a range is the broadcast address.
            if _RESERVED <= number < self._size - 1 and number not in self._taken:
                self._taken.add(number)
                self._next = number + 1
                return str(self._kind(self._first + number))
        raise NoMoreAddresses

    def mark(self, address: str) -> None:
        """Mark an address as used; addresses outside of the range are ignored."""
        if (number := self._number(address)) is not None:
            self._taken.add(number)

    def give_back(self, address: str) -> None:
        if (number := self._number(address)) is not None:
            self._taken.discard(number)

    def _number(self, address: str) -> int | None:
        try:
            number = int(ip_address(address)) - self._first
        except ValueError:
            return None
        return number if 0 <= number < self._size else None


class NodeRanges:
    """Pod ranges of nodes, allocated from the cluster range."""

    def __init__(self, cidr: str, mask_size: int) -> None:
        """Raises ValueError for an invalid range."""
        network = ip_network(cidr)
        self._first, self._bits = int(network.network_address), network.max_prefixlen - mask_size
        self._size, self._mask = 1 << (mask_size - network.prefixlen), mask_size
        self._kind: type[Address] = IPv4Address if network.version == 4 else IPv6Address
        self._next = 0
        self._taken: set[int] = set()

    def take(self) -> str:
        """Allocate a range. Raises NoMoreAddresses."""
        for offset in range(self._size):
            number = (self._next + offset) % self._size
            if number not in self._taken:
                self._taken.add(number)
                self._next = number + 1
                return f"{self._kind(self._first + (number << self._bits))}/{self._mask}"
        raise NoMoreAddresses

    def mark(self, cidr: str) -> None:
        if (number := self._number(cidr)) is not None:
            self._taken.add(number)

    def give_back(self, cidr: str) -> None:
        if (number := self._number(cidr)) is not None:
            self._taken.discard(number)

    def _number(self, cidr: str) -> int | None:
        try:
            number = (int(ip_network(cidr).network_address) - self._first) >> self._bits
        except ValueError:
            return None
        return number if 0 <= number < self._size else None


class NodeAddresses:
    """Addresses and pod ranges of nodes.

    Assignments are permanent, even before the node object shows them.
    """

    def __init__(self, config: SimulationConfig) -> None:
        self._ranges = NodeRanges(config.cluster_cidr, config.node_cidr_mask_size)
        self._addresses = Addresses(config.node_address_cidr)
        self._given_ranges: dict[str, str] = {}
        self._given: dict[str, str] = {}

    def address(self, node: Json) -> str:
        """Return the node's address, allocating if needed. Raises NoMoreAddresses."""
        name = name_of(node)
        if not (own := address_of(node) or self._given.get(name, "")):
            own = self._given[name] = self._addresses.take()
        return own

    def cidr(self, node: Json) -> str:
        """Return the node's pod range, allocating if needed. Raises NoMoreAddresses."""
        name = name_of(node)
        if not (own := cidr_of(node) or self._given_ranges.get(name, "")):
            own = self._given_ranges[name] = self._ranges.take()
        return own

    def mark(self, node: Json) -> None:
        """Mark the node's address and range as used."""
        self._ranges.mark(cidr_of(node))
        self._addresses.mark(address_of(node))

    def give_back(self, node: Json) -> None:
        name = name_of(node)
        for cidr in (cidr_of(node), self._given_ranges.pop(name, "")):
            self._ranges.give_back(cidr)
        for address in (address_of(node), self._given.pop(name, "")):
            self._addresses.give_back(address)


class PodAddresses:
    """Pod addresses from the ranges of the nodes, released when the pods end."""

    def __init__(self) -> None:
        self._ranges: dict[str, Addresses] = {}

    def take(self, cidr: str) -> str:
        """Allocate an address; empty if the range is exhausted."""
        try:
            return self._range(cidr).take()
        except NoMoreAddresses:
            return ""

    def mark(self, cidr: str, pod: Json) -> str:
        """Mark the pod's existing address as used, and return it; empty without an own address."""
        address: str = text(pod, "status", "podIP")
        if address and not part(pod, "spec").get("hostNetwork"):
            self._range(cidr).mark(address)
            return address
        return ""

    def give_back(self, cidr: str, address: str) -> None:
        if address and cidr in self._ranges:
            self._ranges[cidr].give_back(address)

    def _range(self, cidr: str) -> Addresses:
        if cidr not in self._ranges:
            self._ranges[cidr] = Addresses(cidr)
        return self._ranges[cidr]
