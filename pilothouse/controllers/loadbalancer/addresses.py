"""A range of addresses, each of which belongs to one service at most."""

from __future__ import annotations

import ipaddress


class NoAddressLeft(Exception):
    """Every address of the range is taken."""


class AddressPool:
    """The last address of the range is for all ingresses; the others are handed out, the lowest that is free first.

    What is taken, the services say themselves, so that an address is kept when the server starts again.
    """

    def __init__(self, cidr: str) -> None:
        """Raises ValueError if it is no range."""
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
        """Return whether it can be handed out."""
        try:
            return ipaddress.ip_address(address) in self._network and address != self.of_ingresses
        except ValueError:
            return False

    def take(self, owner: str, wanted: str = "") -> str:
        """Return the address that is the owner's from now on: the one it wants, if it can be had.

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
