"""Pod addresses, from the range of the node, released when the pod ends."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, part, text
from pilothouse.nodes.fleet.addresses import Addresses, NoMoreAddresses


class PodAddresses:
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
