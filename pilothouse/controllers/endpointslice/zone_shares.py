"""CPU share of each zone's nodes, updated incrementally."""

from __future__ import annotations

from collections import Counter

from pilothouse.controllers.endpointslice.endpoint import ZONE_LABEL
from pilothouse.kinds.nodes import is_ready
from pilothouse.machinery.objects import Json, labels_of, name_of, part
from pilothouse.machinery.quantity import parse_quantity

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class ZoneShares:
    """CPU shares of ready nodes, excluding control plane nodes."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[str, int]] = {}  # (zone, milli-CPU) by node; "" or 0 if missing
        self._cpu: Counter[str] = Counter()
        self._untold = 0
        """Number of nodes without zone or CPU."""

    def set_node(self, node: Json) -> None:
        self.forget_node(name_of(node))
        if is_ready(node) and not any(label in labels_of(node) for label in _CONTROL_PLANE):
            name = name_of(node)
            zone = labels_of(node).get(ZONE_LABEL) or ""
            amount = _milli_cpu(node)
            self._nodes[name] = zone, amount
            if zone and amount:
                self._cpu[zone] += amount
            else:
                self._untold += 1

    def forget_node(self, name: str) -> None:
        zone, amount = self._nodes.pop(name, ("", -1))
        if zone and amount:
            self._cpu[zone] -= amount
            if not self._cpu[zone]:
                del self._cpu[zone]
        elif amount >= 0:
            self._untold -= 1

    @property
    def ratios(self) -> dict[str, float] | None:
        """Return the ratio per zone; None if a node lacks information or there are fewer than two zones."""
        if self._untold or len(self._cpu) < 2:
            return None
        total = self._cpu.total()
        return {zone: amount / total for zone, amount in self._cpu.items()}


def _milli_cpu(node: Json) -> int:
    allocatable = part(node, "status", "allocatable")
    return parse_quantity(str(allocatable.get("cpu") or "0")).milli_value()
