"""The addresses of pods: each out of the range of its node, and free again when its pod has ended."""

from __future__ import annotations

from pilothouse.machinery.objects import Json
from pilothouse.nodes.fleet.addresses import Addresses, NoMoreAddresses


class PodAddresses:
    def __init__(self) -> None:
        self._ranges: dict[str, Addresses] = {}

    def take(self, cidr: str) -> str:
        """Return an address; empty if the range is used up."""
        try:
            return self._range(cidr).take()
        except NoMoreAddresses:
            return ""

    def mark(self, cidr: str, pod: Json) -> str:
        """Return the address that the pod has already, which nobody else shall get."""
        address: str = (pod.get("status") or {}).get("podIP") or ""
        if address and not (pod.get("spec") or {}).get("hostNetwork"):
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
