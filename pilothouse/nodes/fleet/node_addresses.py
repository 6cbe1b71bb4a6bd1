"""Addresses and pod ranges of nodes."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, name_of
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.addresses import Addresses, NodeRanges
from pilothouse.nodes.fleet.node_object import address_of, cidr_of


class NodeAddresses:
    """Assignments are permanent, even before the node object shows them."""

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
