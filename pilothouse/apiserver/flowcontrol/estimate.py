"""Seat estimates: lists by number of objects, writes by number of watchers."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TypeAlias

from pilothouse.apiserver.flowcontrol.series import FlowSeries
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource

_OBJECTS_PER_SEAT = 100
_WATCHES_PER_SEAT = 10
_MOST_SEATS = 10
_LONG_LIMIT = 20
_EVENT_SECONDS = 0.005
_WRITES = frozenset(("create", "update", "patch", "delete"))


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    seats: int = 1
    lingering: float = 0.0
    """Seconds of seat occupancy after the response, while watchers are notified."""


ONE_SEAT = WorkEstimate()


@dataclass(frozen=True, slots=True)
class ResourceStats:
    objects: int
    watchers: int


StatsOf: TypeAlias = Callable[[GroupResource], ResourceStats | None]
"""Return the stats of a resource; None for resources not served here."""


def estimate(request: Request, stats_of: StatsOf, series: FlowSeries) -> WorkEstimate:
    """Estimate the work; `series` records the number of watchers of written resources."""
    info = request.info
    if not info.is_resource or info.verb == "get":
        return ONE_SEAT
    if info.verb in ("list", "watch"):
        stats = None if info.name or _resumes(request) else stats_of(info.group_resource)
        return ONE_SEAT if stats is None else _reading(stats, request)
    stats = count_watchers(request, stats_of, series)
    return ONE_SEAT if stats is None else _writing(stats)


def count_watchers(request: Request, stats_of: StatsOf, series: FlowSeries) -> ResourceStats | None:
    """Return the stats of the written resource; None for requests that notify no watchers."""
    info = request.info
    if not info.is_resource or info.verb not in _WRITES or info.subresource == "token":
        return None
    stats = stats_of(info.group_resource)
    if stats is not None:
        series.watchers.observe(stats.watchers)
    return stats


def _resumes(request: Request) -> bool:
    """Return whether a watch resumes at a resource version, without initial state."""
    if request.info.verb != "watch" or request.param("sendInitialEvents") == "true":
        return False
    return request.param("resourceVersion") not in ("", "0")


def _reading(stats: ResourceStats, request: Request) -> WorkEstimate:
    limit = request.param("limit")
    # Invalid limits are rejected later.
    asked = int(limit) if limit.isdecimal() and len(limit) < _LONG_LIMIT else 0
    count = min(stats.objects, asked) if asked else stats.objects
    return WorkEstimate(min(_MOST_SEATS, max(1, ceil(count / _OBJECTS_PER_SEAT))))


def _writing(stats: ResourceStats) -> WorkEstimate:
    if stats.watchers < _WATCHES_PER_SEAT:
        return ONE_SEAT
    wanted = ceil(stats.watchers / _WATCHES_PER_SEAT)
    seats = min(_MOST_SEATS, wanted)
    return WorkEstimate(seats, wanted * _EVENT_SECONDS / seats)
