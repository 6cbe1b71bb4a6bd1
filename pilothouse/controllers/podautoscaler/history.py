"""What an autoscaler has recommended and done lately. It is kept in memory, so a restart begins anew."""

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
    """Times are those of a clock that never goes back."""

    _recommendations: list[_Entry] = field(default_factory=list)
    _added: list[_Entry] = field(default_factory=list)
    _removed: list[_Entry] = field(default_factory=list)

    def begin(self, replicas: int, now: float) -> None:
        """The number of replicas that is found at first stands for what was recommended before."""
        if not self._recommendations:
            self._recommendations.append(_Entry(now, replicas))

    def recommended(self, since: float) -> list[int]:
        return [each.replicas for each in self._recommendations if each.at > since]

    def recommend(self, replicas: int, now: float, keep: float) -> None:
        """What is older than `keep` seconds will not be asked for again."""
        self._recommendations = [each for each in self._recommendations if each.at > now - keep]
        self._recommendations.append(_Entry(now, replicas))

    def changed(self, before: int, after: int, behavior: Json, now: float) -> None:
        if after > before:
            self._added = [*_recent(self._added, behavior["scaleUp"], now), _Entry(now, after - before)]
        else:
            self._removed = [*_recent(self._removed, behavior["scaleDown"], now), _Entry(now, before - after)]

    def replicas_before(self, current: int, now: float, period: float) -> int:
        """Return how many there were so many seconds ago, as far as this autoscaler has changed it."""
        added = sum(each.replicas for each in self._added if each.at > now - period)
        removed = sum(each.replicas for each in self._removed if each.at > now - period)
        return current - added + removed


def _recent(entries: list[_Entry], rules: Json, now: float) -> list[_Entry]:
    longest = max((each["periodSeconds"] for each in rules.get("policies") or ()), default=0)
    return [each for each in entries if each.at >= now - longest]
