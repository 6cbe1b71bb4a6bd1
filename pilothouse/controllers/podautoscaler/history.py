"""Recent recommendations and scalings of an autoscaler, in memory only; a restart clears the history."""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class _Entry:
    at: float
    replicas: int


@dataclass(slots=True)
class History:
    """History of one autoscaler. Times are from a monotonic clock."""

    _recommendations: list[_Entry] = field(default_factory=list)
    _added: list[_Entry] = field(default_factory=list)
    _removed: list[_Entry] = field(default_factory=list)

    def begin(self, replicas: int, now: float) -> None:
        """Seed an empty history with the current replicas."""
        if not self._recommendations:
            self._recommendations.append(_Entry(now, replicas))

    def recommended(self, since: float) -> list[int]:
        return [each.replicas for each in self._recommendations if each.at > since]

    def recommend(self, replicas: int, now: float, keep: float) -> None:
        """Record a recommendation; drop those older than `keep` seconds."""
        self._recommendations = [each for each in self._recommendations if each.at > now - keep]
        self._recommendations.append(_Entry(now, replicas))

    def changed(self, before: int, after: int, behavior: Json, now: float) -> None:
        if after > before:
            self._added = [*_recent(self._added, behavior["scaleUp"], now), _Entry(now, after - before)]
        else:
            self._removed = [*_recent(self._removed, behavior["scaleDown"], now), _Entry(now, before - after)]

    def replicas_before(self, current: int, now: float, period: float) -> int:
        """Return the replicas `period` seconds ago, as far as this autoscaler changed them."""
        added = sum(each.replicas for each in self._added if each.at > now - period)
        removed = sum(each.replicas for each in self._removed if each.at > now - period)
        return current - added + removed


def _recent(entries: list[_Entry], rules: Json, now: float) -> list[_Entry]:
    longest = max((each["periodSeconds"] for each in rules.get("policies") or ()), default=0)
    return [each for each in entries if each.at >= now - longest]
