"""Priority levels: nominal, borrowed and lent seats.

Seats are divided fairly within the bounds of the levels: every level gets the same multiple of its target, clamped to
its minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from math import ceil

from pilothouse.apiserver.flowcontrol.pacing import Line
from pilothouse.apiserver.flowcontrol.queue_set import QueueSet, Queuing
from pilothouse.apiserver.flowcontrol.use import DemandStats
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, uid_of

_LEAST_TARGET = 0.001
_BISECTIONS = 60


@dataclass(slots=True)
class PriorityLevel:
    name: str
    uid: str
    spec: Json
    queues: QueueSet
    line: Line = field(default_factory=Line)
    """Requests with seats that wait to start."""
    stats: DemandStats = field(default_factory=DemandStats)
    nominal: int = 0
    minimum: int = 0
    maximum: int = 0
    quiescing: bool = False
    """Whether the level was deleted; a quiescing level is removed after its last request."""

    @property
    def is_exempt(self) -> bool:
        return bool(self.spec["type"] == "Exempt")

    @property
    def target(self) -> float:
        """Return the target number of seats by recent demand."""
        return max(float(self.least_now), self.stats.smoothed)

    @property
    def _limits(self) -> Json:
        return self.spec.get("exempt" if self.is_exempt else "limited") or {}

    @property
    def shares(self) -> int:
        return int(self._limits.get("nominalConcurrencyShares") or 0)

    @property
    def queuing(self) -> Queuing:
        if self.is_exempt:
            return Queuing(-1)
        queuing = (self._limits.get("limitResponse") or {}).get("queuing")
        if queuing is None:
            return Queuing(0)
        return Queuing(queuing["queues"], queuing["handSize"], queuing["queueLengthLimit"])

    @property
    def least_now(self) -> int:
        """Return the seats that cannot be lent: the minimum, or peak usage up to the nominal limit."""
        used = self.stats.high if self.is_exempt else min(self.nominal, self.stats.high)
        return max(self.minimum, used)

    def divide(self, server_limit: int, shares: float) -> None:
        """Compute nominal, minimum and maximum seats from the server's limit."""
        self.nominal = ceil(server_limit * self.shares / shares) if shares else 0
        lendable, borrowing = self._limits.get("lendablePercent"), self._limits.get("borrowingLimitPercent")
        self.minimum = self.nominal - round(self.nominal * (lendable or 0) / 100)
        extra = server_limit if borrowing is None else round(self.nominal * borrowing / 100)
        self.maximum = self.nominal + extra


def new_level(config: Json, now: Callable[[], float]) -> PriorityLevel:
    queues = QueueSet(Queuing(0), now=now)
    return PriorityLevel(name_of(config), uid_of(config), config["spec"], queues)


def adjust(levels: Iterable[PriorityLevel]) -> float:
    """Assign the seats of every level for the next period; return the common multiple of the targets."""
    known = list(levels)
    for level in known:
        level.stats.update(level.queues.use.reset_demand())
    exempt = [level for level in known if level.is_exempt]
    limited = [level for level in known if not level.is_exempt]
    total = sum(level.nominal for level in known) - sum(level.least_now for level in exempt)
    for level in exempt:
        level.queues.configure(level.queuing, limit=level.least_now)
    allocation = _divided(total, limited)
    for level, seats in zip(limited, allocation.seats, strict=True):
        level.queues.configure(level.queuing, limit=round(seats))
    return allocation.multiple


def _divided(total: int, levels: list[PriorityLevel]) -> SeatAllocation:
    least, now = sum(level.minimum for level in levels), sum(level.least_now for level in levels)
    if total <= least:
        return SeatAllocation([float(level.minimum) for level in levels], 0.0)
    if total <= now:
        part = (total - least) / (now - least)
        return SeatAllocation([level.minimum + (level.least_now - level.minimum) * part for level in levels], 0.0)
    claims = [SeatClaim(level.least_now, level.maximum, level.target) for level in levels]
    return allocate(total, claims)


@dataclass(frozen=True, slots=True)
class SeatClaim:
    lower: float
    upper: float
    target: float

    def at(self, multiple: float) -> float:
        return min(self.upper, max(self.lower, max(self.target, _LEAST_TARGET) * multiple))


@dataclass(frozen=True, slots=True)
class SeatAllocation:
    seats: list[float]
    multiple: float


def allocate(total: float, claims: Sequence[SeatClaim]) -> SeatAllocation:
    """Return seats that sum up to `total` within the bounds, or the nearest bounds if infeasible."""
    low, high = 0.0, max((claim.upper / max(claim.target, _LEAST_TARGET) for claim in claims), default=0.0)
    for _ in range(_BISECTIONS):  # bisection: the sum grows monotonically with the multiple
        middle = (low + high) / 2
        if sum(claim.at(middle) for claim in claims) < total:
            low = middle
        else:
            high = middle
    return SeatAllocation([claim.at(high) for claim in claims], high)
