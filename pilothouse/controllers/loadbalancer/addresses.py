"""Address pool with at most one service per address."""

from __future__ import annotations

import ipaddress


class NoAddressLeft(Exception):
    """All addresses of the range are allocated."""


class AddressPool:
    """Pool of addresses. The last address serves all ingresses; the others are allocated lowest first.

    Allocations are restored from services, so addresses survive a restart.
    """

    def __init__(self, cidr: str) -> None:
        """Raises ValueError if `cidr` is invalid."""
        self._network = ipaddress.ip_network(cidr)
        self._owners: dict[str, str] = {}
        alone = self._network.num_addresses <= 2
        ends = (0, 0) if alone or self._network.version == 6 else (1, 1)
        self._first, self._last = ends[0], self._network.num_addresses - 1 - ends[1]

    @property
    def of_ingresses(self) -> str:
        return str(self._network[self._last])

    def owner(self, address: str) -> str:
        return self._owners.get(address, "")

    def contains(self, address: str) -> bool:
        """Return whether the address can be allocated."""
        try:
            return ipaddress.ip_address(address) in self._network and address != self.of_ingresses
        except ValueError:
            return False

    def take(self, owner: str, wanted: str = "") -> str:
        """Allocate and return an address for the owner: `wanted` if available, else the lowest free one.

        Raises NoAddressLeft.
        """
        if wanted and self.contains(wanted) and self._owners.setdefault(wanted, owner) == owner:
            return wanted
        for number in range(self._first, self._last):
            address = str(self._network[number])
            if address not in self._owners:
                self._owners[address] = owner
                return address
        raise NoAddressLeft(f"no address is left in {self._network}")

    def release(self, owner: str) -> None:
        for address in [each for each, held_by in self._owners.items() if held_by == owner]:
            del self._owners[address]
