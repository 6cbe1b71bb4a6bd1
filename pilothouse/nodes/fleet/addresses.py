"""Addresses: a range of pod addresses and one of its own for each node, and one out of its node's for each pod."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

_RESERVED = 2
"""The network's own address, and its gateway's."""


class NoMoreAddresses(Exception):
    """The range is used up."""


class Addresses:
    """The addresses of one range, each given out once. One that was given back is not given out again at once."""

    def __init__(self, cidr: str) -> None:
        """Raises ValueError."""
        network = ip_network(cidr)
        self._first, self._size = int(network.network_address), network.num_addresses
        self._kind: type[Address] = IPv4Address if network.version == 4 else IPv6Address
        self._next = _RESERVED
        self._taken: set[int] = set()

    def take(self) -> str:
        """Raises NoMoreAddresses."""
        for offset in range(self._size):
            number = (self._next + offset) % self._size
            # The last one of a range is for those that speak to all.
            if _RESERVED <= number < self._size - 1 and number not in self._taken:
                self._taken.add(number)
                self._next = number + 1
                return str(self._kind(self._first + number))
        raise NoMoreAddresses

    def mark(self, address: str) -> None:
        """One that somebody has already; those outside the range do not matter."""
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
    """The parts of the cluster's range, each given out once."""

    def __init__(self, cidr: str, mask_size: int) -> None:
        """Raises ValueError."""
        network = ip_network(cidr)
        self._first, self._bits = int(network.network_address), network.max_prefixlen - mask_size
        self._size, self._mask = 1 << (mask_size - network.prefixlen), mask_size
        self._kind: type[Address] = IPv4Address if network.version == 4 else IPv6Address
        self._next = 0
        self._taken: set[int] = set()

    def take(self) -> str:
        """Raises NoMoreAddresses."""
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
