"""Scaling limits: stabilization windows, behavior policies, and minimum and maximum replicas."""

from __future__ import annotations

import math
from dataclasses import field

from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_FACTOR, _AT_LEAST = 2, 4
"""Without a behavior, the scale-up limit is max(double, 4)."""

_READY = Condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
_UP_STABILIZED = Condition(
    "AbleToScale",
    "True",
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED = Condition(
    "AbleToScale",
    "True",
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_LIMITS = {
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
}
_WITHIN = Condition("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    current: int
    desired: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Limited:
    replicas: int
    conditions: tuple[Condition, Condition]
    """(AbleToScale, ScalingLimited)."""


def limit(wish: Wish, behavior: Json | None, history: History, window: float, now: float) -> Limited:
    """Return the replicas allowed now. `window` is the default stabilization window."""
    if behavior is None:
        stable = max([wish.desired, *history.recommended(now - window)])
        history.recommend(wish.desired, now, window)
        fastest = max(_FACTOR * wish.current, _AT_LEAST)
        reason, most = ("ScaleUpLimit", fastest) if wish.most > fastest else ("TooManyReplicas", wish.most)
        limited = (stable, "")
        if stable < wish.least:
            limited = (wish.least, "TooFewReplicas")
        elif stable > most:
            limited = (most, reason)
        return _limited(limited, _READY if stable == wish.desired else _DOWN_STABILIZED)
    up = behavior["scaleUp"].get("stabilizationWindowSeconds") or 0
    down = behavior["scaleDown"].get("stabilizationWindowSeconds")
    down = window if down is None else down
    lowest = min([wish.desired, *history.recommended(now - up)])
    highest = max([wish.desired, *history.recommended(now - down)])
    history.recommend(wish.desired, now, max(up, down))
    stable = min(max(wish.current, lowest), highest)
    able = _READY
    if stable != wish.desired:
        able = _UP_STABILIZED if wish.desired >= wish.current else _DOWN_STABILIZED
    return _limited(_by_behavior(wish, stable, behavior, history, now), able)


def _limited(replicas_and_reason: tuple[int, str], able: Condition) -> Limited:
    replicas, reason = replicas_and_reason
    limited = Condition("ScalingLimited", "True", reason, _LIMITS[reason]) if reason else _WITHIN
    return Limited(replicas, (able, limited))


def _by_behavior(wish: Wish, stable: int, behavior: Json, history: History, now: float) -> tuple[int, str]:
    """Return (replicas, limiting reason)."""
    if stable > wish.current:
        fastest = max(wish.current, scale_up_limit(wish.current, behavior["scaleUp"], history, now))
        reason, most = ("ScaleUpLimit", fastest) if wish.most > fastest else ("TooManyReplicas", wish.most)
        return (most, reason) if stable > most else (stable, "")
    if stable < wish.current:
        fastest = min(wish.current, scale_down_limit(wish.current, behavior["scaleDown"], history, now))
        reason, least = ("ScaleDownLimit", fastest) if wish.least < fastest else ("TooFewReplicas", wish.least)
        return (least, reason) if stable < least else (stable, "")
    return stable, ""


def scale_up_limit(current: int, rules: Json, history: History, now: float) -> int:
    """Return the maximum replicas allowed by the policies."""
    choose = min if rules.get("selectPolicy") == "Min" else max
    if rules.get("selectPolicy") == "Disabled":
        return current
    return choose(_raised(current, policy, history, now) for policy in rules["policies"])


def scale_down_limit(current: int, rules: Json, history: History, now: float) -> int:
    """Return the minimum replicas allowed by the policies."""
    choose = max if rules.get("selectPolicy") == "Min" else min
    if rules.get("selectPolicy") == "Disabled":
        return current
    return choose(_lowered(current, policy, history, now) for policy in rules["policies"])


def _raised(current: int, policy: Json, history: History, now: float) -> int:
    before, value = history.replicas_before(current, now, policy["periodSeconds"]), int(policy["value"])
    return before + value if policy["type"] == "Pods" else math.ceil(before * (1 + value / 100))


def _lowered(current: int, policy: Json, history: History, now: float) -> int:
    before, value = history.replicas_before(current, now, policy["periodSeconds"]), int(policy["value"])
    return before - value if policy["type"] == "Pods" else int(before * (1 - value / 100))


@dataclass(frozen=True, slots=True)
class _Entry:
    at: float
    replicas: int


@dataclass(slots=True)
class History:
    """Recent recommendations and scalings of one autoscaler. Times are from a monotonic clock.

    The history is in memory only; a restart clears the history.
    """

    _recommendations: list[_Entry] = field(default_factory=list)
    _added: list[_Entry] = field(default_factory=list)
    _removed: list[_Entry] = field(default_factory=list)

    def begin(self, replicas: int, now: float) -> None:
        """Seed an empty history with the current replicas."""
        if not self._recommendations:
            self._recommendations.append(_Entry(now, replicas))

    def recommended(self, since: float) -> list[int]:
        return [recommendation.replicas for recommendation in self._recommendations if recommendation.at > since]

    def recommend(self, replicas: int, now: float, keep: float) -> None:
        """Record a recommendation; drop those older than `keep` seconds."""
        self._recommendations = [
            recommendation for recommendation in self._recommendations if recommendation.at > now - keep
        ]
        self._recommendations.append(_Entry(now, replicas))

    def changed(self, before: int, after: int, behavior: Json, now: float) -> None:
        if after > before:
            self._added = [*_recent(self._added, behavior["scaleUp"], now), _Entry(now, after - before)]
        else:
            self._removed = [*_recent(self._removed, behavior["scaleDown"], now), _Entry(now, before - after)]

    def replicas_before(self, current: int, now: float, period: float) -> int:
        """Return the replicas `period` seconds ago, as far as this autoscaler changed them."""
        added = sum(scaling.replicas for scaling in self._added if scaling.at > now - period)
        removed = sum(scaling.replicas for scaling in self._removed if scaling.at > now - period)
        return current - added + removed


def _recent(entries: list[_Entry], rules: Json, now: float) -> list[_Entry]:
    longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
    return [entry for entry in entries if entry.at >= now - longest]
