"""Snapshot of a DaemonSet: nodes, their eligibility, pods per node, update limits and status counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from pilothouse.client.rest.client import Client
from pilothouse.controllers.daemon.node_fit import Fit, is_updated, target_node, template_generation
from pilothouse.controllers.resources import DAEMON_SETS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, is_available, is_ready, node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import scaled_int_or_percent
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
)


@dataclass(frozen=True, slots=True)
class DaemonView:
    daemon_set: Json
    digest: str
    """Hash of the current revision."""
    fits: Mapping[str, Fit]
    """Eligibility by node name."""
    pods: Mapping[str, Sequence[Json]]
    """Pods by target node; the node may no longer exist."""
    now: datetime
    min_ready_seconds: int = field(init=False)
    allows_surge: bool = field(init=False)
    """Whether a node may have an old and a new pod at once."""
    _generation: int | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_ready_seconds", int(self.daemon_set["spec"].get("minReadySeconds") or 0))
        object.__setattr__(self, "allows_surge", max_surge(self.daemon_set, 1) > 0)
        object.__setattr__(self, "_generation", template_generation(self.daemon_set))

    @property
    def desired(self) -> int:
        """Return the number of eligible nodes."""
        return sum(fit.should_run for fit in self.fits.values())

    def is_available(self, pod: Json) -> bool:
        return is_available(pod, self.min_ready_seconds, self.now)

    def is_updated(self, pod: Json) -> bool:
        return is_updated(pod, self.digest, self._generation)


def by_node(pods: Iterable[Json]) -> dict[str, list[Json]]:
    """Group pods by target node, excluding ended pods that are terminating."""
    pods_by_node: dict[str, list[Json]] = {}
    for pod in pods:
        if has_ended(pod) and is_deleting(pod):
            continue
        if (node := target_node(pod)) is not None:
            pods_by_node.setdefault(node, []).append(pod)
    return pods_by_node


def oldest_first(pods: Iterable[Json]) -> list[Json]:
    """Sort pods by age; unscheduled pods come last."""
    return sorted(
        pods, key=lambda pod: (not node_name(pod), metadata(pod).get("creationTimestamp") or "", name_of(pod))
    )


def is_rolling(daemon_set: Json) -> bool:
    return _strategy(daemon_set).get("type") == "RollingUpdate"


def max_surge(daemon_set: Json, desired: int) -> int:
    """Return maxSurge; percentages are rounded up."""
    return _scaled(daemon_set, "maxSurge", desired)


def max_unavailable(daemon_set: Json, desired: int) -> int:
    """Return maxUnavailable; at least 1 if maxSurge is 0."""
    allowed = _scaled(daemon_set, "maxUnavailable", desired)
    return 1 if desired > 0 and allowed == 0 and max_surge(daemon_set, desired) == 0 else allowed


def _scaled(daemon_set: Json, limit: str, total: int) -> int:
    if not is_rolling(daemon_set):
        return 0
    value = (_strategy(daemon_set).get("rollingUpdate") or {}).get(limit) or 0
    return scaled_int_or_percent(value, total, round_up=True)


def _strategy(daemon_set: Json) -> Json:
    return daemon_set["spec"].get("updateStrategy") or {}


def count(view: DaemonView) -> dict[str, int]:
    """Return the status counts. For several pods on a node, the oldest counts."""
    counts = dict.fromkeys(_COUNTS, 0)
    for node, fit in view.fits.items():
        pods = view.pods.get(node) or ()
        counts["desiredNumberScheduled"] += fit.should_run
        if not fit.should_run:
            counts["numberMisscheduled"] += bool(pods)
        elif pods:
            pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
            counts["currentNumberScheduled"] += 1
            if is_ready(pod):
                counts["numberReady"] += 1
                counts["numberAvailable"] += not view.min_ready_seconds or view.is_available(pod)
            counts["updatedNumberScheduled"] += view.is_updated(pod)
    counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
    return counts


async def write_status(client: Client, daemon_set: Json, counts: dict[str, int], *, is_observed: bool) -> None:
    """Write the counts if changed; `is_observed` also updates observedGeneration.

    Raises StatusError after a failed retry.
    """
    status, generation = daemon_set.get("status") or {}, metadata(daemon_set).get("generation") or 0
    is_known = all((status.get(field) or 0) == number for field, number in counts.items())
    if is_known and (status.get("observedGeneration") or 0) >= generation:
        return
    sets = client.for_resource(DAEMON_SETS, namespace=namespace_of(daemon_set))
    seen = {"observedGeneration": generation} if is_observed else {}
    try:
        await sets.update_status({**daemon_set, "status": {**status, **counts, **seen}})
    except StatusError:
        fresh = await sets.get(name_of(daemon_set))
        await sets.update_status({**fresh, "status": {**(fresh.get("status") or {}), **counts, **seen}})
