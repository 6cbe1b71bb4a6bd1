"""Spread constraints of a pod: its own, or the cluster defaults for pods of a service or workload."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kinds.node_affinity import RequiredNodeAffinity, node_affinity_of, required_node_affinity
from pilothouse.kinds.tolerations import first_untolerated
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import Selector, from_label_selector, from_set
from pilothouse.scheduler.cache.cache import Cache
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.node_order import HOSTNAME, ZONE
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.tallies import Tally
from pilothouse.scheduler.plugins.matching_pods import count_selected
from pilothouse.scheduler.plugins.workload_selectors import WorkloadSelectors

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_HONOR, _IGNORE = "Honor", "Ignore"
_BY_DEFAULT: tuple[Json, ...] = (
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": SOFT, "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": SOFT, "maxSkew": 5},
)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    namespace: str
    key: str
    """Equal for constraints that select the same pods for the same topology key."""

    def includes(self, node: NodeInfo, pod: PodInfo, required: RequiredNodeAffinity | None) -> bool:
        """Return whether the constraint counts the node, by node affinity and taints."""
        if self.honors_affinity and required is not None and not required.matches(node.node or {}):
            return False
        tolerations = pod.spec.get("tolerations") or ()
        return not (self.honors_taints and node.taints and first_untolerated(node.taints, tolerations))

    def tally(self, cache: Cache) -> Tally:
        """Return the number of selected pods by topology domain."""

        def contribution(node: NodeInfo) -> dict[str, int]:
            number = count_selected(self.namespace, self.selector, node)
            return {self.topology_key: number} if number else {}

        return cache.tally(self.key, contribution)

    def includes_all(self, cache: Cache, required: RequiredNodeAffinity | None) -> bool:
        """Return whether every node counts; saves a check per node."""
        anywhere = not self.honors_affinity or required is None
        return anywhere and not (self.honors_taints and cache.tainted)


def required_affinity(pod: PodInfo) -> RequiredNodeAffinity | None:
    """Return the required node affinity; None if every node matches, which saves a check per node."""
    anywhere = not pod.spec.get("nodeSelector") and not node_affinity_of(pod.pod)
    return None if anywhere else required_node_affinity(pod.pod)


def own_constraints(pod: PodInfo, action: str) -> tuple[SpreadConstraint, ...]:
    """Return the pod's own constraints with this action. Raises InvalidSelector."""
    chosen = (each for each in pod.spec.get("topologySpreadConstraints") or () if each["whenUnsatisfiable"] == action)
    return tuple(_read(each, pod, _selector(each, pod)) for each in chosen)


def default_constraints(pod: PodInfo, selectors: WorkloadSelectors) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints for a pod of a service or workload."""
    selector = selectors.of(pod)
    return () if selector.empty else tuple(_read(each, pod, selector) for each in _BY_DEFAULT)


def _selector(constraint: Json, pod: PodInfo) -> Selector:
    selector = from_label_selector(constraint.get("labelSelector"))
    same = {key: pod.labels[key] for key in constraint.get("matchLabelKeys") or () if key in pod.labels}
    return selector.add(*from_set(same).requirements) if same else selector


def _read(constraint: Json, pod: PodInfo, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=constraint["topologyKey"],
        max_skew=constraint["maxSkew"],
        selector=selector,
        min_domains=constraint.get("minDomains") or 1,
        honors_affinity=(constraint.get("nodeAffinityPolicy") or _HONOR) == _HONOR,
        honors_taints=(constraint.get("nodeTaintsPolicy") or _IGNORE) == _HONOR,
        namespace=pod.namespace,
        key=f"{constraint['topologyKey']} of {pod.namespace} {selector if selector.selectable else '-'}",
    )


def has_all_labels(node: NodeInfo, constraints: Iterable[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)
