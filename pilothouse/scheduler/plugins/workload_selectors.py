"""Workload selectors: the pods of a service or a controller."""

from __future__ import annotations

from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.machinery.objects import Json, metadata, resource_version_of
from pilothouse.machinery.selectors.labels import EVERYTHING, Selector, from_label_selector, from_set
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.handle import Listers

_MOST_KEPT = 256


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
            wanted = (service.get("spec") or {}).get("selector") or {}
            if wanted and wanted.items() <= pod.labels.items():
                labels |= wanted
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
