"""Allocation of endpoints to zones by CPU share, and redistribution of hints.

A zone may have less than its share if no zone is overloaded by more than 20 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TypeAlias

from pilothouse.machinery.dataclass import dataclass

OVERLOAD_THRESHOLD = 0.2

Zones: TypeAlias = dict[str, int]
"""Number of endpoints per zone."""


class NoAllocation(Exception):
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
