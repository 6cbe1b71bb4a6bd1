"""Spread constraints of a pod: its own, or the cluster defaults for pods of a service or workload."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.kinds.node_affinity import RequiredNodeAffinity, node_affinity_of, required_node_affinity
from pilothouse.kinds.tolerations import first_untolerated
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, resource_version_of
from pilothouse.machinery.selectors.labels import EVERYTHING, Selector, from_label_selector, from_set
from pilothouse.scheduler.cache.cache import HOSTNAME, ZONE, Cache
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.tallies import Tally
from pilothouse.scheduler.plugins.handle import Listers
from pilothouse.scheduler.plugins.places import count_selected

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_HONOR, _IGNORE = "Honor", "Ignore"
_BY_DEFAULT: tuple[Json, ...] = (
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": SOFT, "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": SOFT, "maxSkew": 5},
)

_MOST_KEPT = 256


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
    chosen = (
        constraint
        for constraint in pod.spec.get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == action
    )
    return tuple(_read(constraint, pod, _selector(constraint, pod)) for constraint in chosen)


def default_constraints(pod: PodInfo, selectors: WorkloadSelectors) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints for a pod of a service or workload."""
    selector = selectors.of(pod)
    return () if selector.empty else tuple(_read(constraint, pod, selector) for constraint in _BY_DEFAULT)


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


class WorkloadSelectors:
    """Caches one selector per controller."""

    def __init__(self, listers: Listers) -> None:
        self._services = listers.services
        self._controllers = {
            "ReplicationController": listers.replication_controllers,
            "ReplicaSet": listers.replica_sets,
            "StatefulSet": listers.stateful_sets,
        }
        self._made: dict[tuple[object, ...], Selector] = {}

    def of(self, pod: PodInfo) -> Selector:
        """Return the combined selector of the pod's services and controller; an empty selector if there are none."""
        labels: dict[str, str] = {}
        for service in self._services.by_index(NAMESPACE_INDEX, pod.namespace):
            selector = (service.get("spec") or {}).get("selector") or {}
            if selector and selector.items() <= pod.labels.items():
                labels |= selector
        controller = self._controller(pod)
        if controller is None:
            return from_set(labels) if labels else EVERYTHING
        key = (pod.namespace, metadata(controller)["name"], resource_version_of(controller), *sorted(labels.items()))
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[key] = _together(labels, controller["spec"].get("selector"))
        return self._made[key]

    def _controller(self, pod: PodInfo) -> Json | None:
        for reference in pod.pod["metadata"].get("ownerReferences") or ():
            if reference.get("controller") and reference["kind"] in self._controllers:
                name = f"{pod.namespace}/{reference['name']}"
                return self._controllers[reference["kind"]].get_by_key(name)
        return None


def _together(labels: dict[str, str], selector: Json | None) -> Selector:
    """Combine labels with a LabelSelector, or with the plain label map of a ReplicationController."""
    together = from_set(labels) if labels else EVERYTHING
    if not selector:
        return together
    is_label_selector = not all(isinstance(value, str) for value in selector.values())
    wanted = from_label_selector(selector) if is_label_selector else from_set(selector)
    return together.add(*wanted.requirements)
