"""Allocation of endpoints to zones by CPU share, and redistribution of hints.

A zone may have less than its share if no zone is overloaded by more than 20 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil
from typing import TypeAlias

from pilothouse.controllers.endpointslice.endpoint import ZONE_LABEL
from pilothouse.kinds.nodes import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, name_of, part
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.status_error import PilothouseError

OVERLOAD_THRESHOLD = 0.2

Zones: TypeAlias = dict[str, int]
"""Number of endpoints per zone."""
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class NoAllocation(PilothouseError):
    """No allocation avoids overloading a zone."""


@dataclass(frozen=True, slots=True)
class ZoneAllocation:
    minimum: int
    maximum: int
    desired: float


def allocations(ratios: Mapping[str, float], endpoints: int) -> dict[str, ZoneAllocation]:
    """Return the allocation per zone. Raises NoAllocation."""
    if len(ratios) < 2:
        raise NoAllocation("Nodes only ready in one zone")
    if len(ratios) > endpoints:
        raise NoAllocation(f"Insufficient number of endpoints ({endpoints} endpoints, {len(ratios)} zones)")
    least = {zone: _least(ratio * endpoints) for zone, ratio in ratios.items()}
    spare = endpoints - sum(least.values())
    if spare < 0:
        raise NoAllocation(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
            f" ({endpoints} endpoints, {len(ratios)} zones)"
        )
    return {
        zone: ZoneAllocation(minimum, minimum + spare, max(ratios[zone] * endpoints, minimum))
        for zone, minimum in least.items()
    }


def is_overloaded(hints: Zones, ratios: Mapping[str, float]) -> bool:
    """Return whether existing hints no longer fit the zones."""
    if not hints or not ratios:
        return bool(hints)
    total = sum(hints.values())
    return any(zone not in hints or hints[zone] < _least(total * ratio) for zone, ratio in ratios.items())


@dataclass(frozen=True, slots=True)
class Redistribution:
    giving: Zones
    receiving: Zones


def redistribution(allocated: Mapping[str, ZoneAllocation], hints: Zones) -> Redistribution:
    """Return the endpoints each zone must give or receive to approach its desired number, largest need first."""
    surplus = {zone: hints.get(zone, 0) - allocation.desired for zone, allocation in allocated.items()}
    giving, receiving = Zones(), Zones()
    while True:
        giver, taker = max(surplus, key=surplus.__getitem__), min(surplus, key=surplus.__getitem__)
        give, take = surplus[giver], -surplus[taker]
        if min(give, take) < 0.5 or max(give, take) < 1:
            return Redistribution(giving, receiving)
        giving[giver], receiving[taker] = giving.get(giver, 0) + 1, receiving.get(taker, 0) + 1
        surplus[giver] -= 1
        surplus[taker] += 1


def _least(share: float) -> int:
    return ceil(share / (1 + OVERLOAD_THRESHOLD))


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
            allocatable = part(node, "status", "allocatable")
            amount = parse_quantity(str(allocatable.get("cpu") or "0")).milli_value()
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
