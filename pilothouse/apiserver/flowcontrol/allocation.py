"""Dividing the server's seats: as fair as the bounds of each class allow.

All classes get the same multiple of what they aim at, except that none gets less or more than its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.dataclass import dataclass

_LEAST_TARGET = 0.001
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Claim:
    lower: float
    upper: float
    target: float

    def at(self, multiple: float) -> float:
        return min(self.upper, max(self.lower, max(self.target, _LEAST_TARGET) * multiple))


@dataclass(frozen=True, slots=True)
class Allocation:
    seats: list[float]
    multiple: float


def allocate(total: float, claims: Sequence[Claim]) -> Allocation:
    """Sums up to `total` where the bounds let it; else everybody has the bound that is nearest to that."""
    low, high = 0.0, max((claim.upper / max(claim.target, _LEAST_TARGET) for claim in claims), default=0.0)
    for _ in range(_ROUNDS):  # what is given out only grows with the multiple, so that halving finds it
        middle = (low + high) / 2
        if sum(claim.at(middle) for claim in claims) < total:
            low = middle
        else:
            high = middle
    return Allocation([claim.at(high) for claim in claims], high)
