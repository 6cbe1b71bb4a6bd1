"""Snapshot of a DaemonSet: nodes, their eligibility, and pods per node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.daemon.node_fit import Fit
from pilothouse.controllers.daemon.pod_template import is_updated, target_node, template_generation
from pilothouse.controllers.daemon.strategy import max_surge
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, is_available, node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of


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
    found: dict[str, list[Json]] = {}
    for pod in pods:
        if has_ended(pod) and is_deleting(pod):
            continue
        if (node := target_node(pod)) is not None:
            found.setdefault(node, []).append(pod)
    return found


def oldest_first(pods: Iterable[Json]) -> list[Json]:
    """Sort pods by age; unscheduled pods come last."""
    return sorted(
        pods, key=lambda pod: (not node_name(pod), metadata(pod).get("creationTimestamp") or "", name_of(pod))
    )
