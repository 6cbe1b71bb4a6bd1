"""Informer handlers that feed the cache and the queue."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.objects import Json, labels_of, name_of, uid_of
from pilothouse.scheduler import cluster_events
from pilothouse.scheduler.cache.pod_info import DEFAULT_SCHEDULER, PodInfo
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.queue.scheduling_queue import SchedulingQueue


class ClusterState:
    """The handlers of all informers of the scheduler."""

    def __init__(self, handle: Handle, queue: SchedulingQueue, *, profiles: frozenset[str] | None = None) -> None:
        """`profiles`: the scheduler names that this scheduler serves."""
        self._cache, self._nominator, self._queue = handle.cache, handle.nominator, queue
        self._profiles = profiles or frozenset((DEFAULT_SCHEDULER,))

    def pods(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)

    def nodes(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._node_added, update=self._node_updated, delete=self._node_deleted)

    def namespaces(self) -> ResourceEventHandlerFuncs:
        def update(old: Json, new: Json) -> None:
            if labels_of(old) != labels_of(new):
                self._cache.forget_answers()

        return ResourceEventHandlerFuncs(update=update)

    def others(self, subject: cluster_events.Subject) -> ResourceEventHandlerFuncs:
        """Return handlers for objects that can make pods schedulable but are only read through listers."""

        def tell(action: cluster_events.Action) -> Callable[[Json | None, Json | None], None]:
            event = cluster_events.ClusterEvent(subject, action)
            return lambda old, new: self._queue.move_all(event, old, new)

        added, updated, deleted = (
            tell(cluster_events.Action.ADD),
            tell(cluster_events.Action.UPDATE),
            tell(cluster_events.Action.DELETE),
        )
        return ResourceEventHandlerFuncs(
            add=lambda obj: added(None, obj),
            update=updated,
            delete=lambda obj: deleted(last_known_state(obj), None),
        )

    def _node_added(self, node: Json) -> None:
        self._cache.set_node(node)
        self._queue.move_all(cluster_events.NODE_ADDED, None, node)

    def _node_updated(self, old: Json, new: Json) -> None:
        if _schedulable_part(old) == _schedulable_part(new) and (info := self._cache.node(name_of(new))):
            info.node = new  # a heartbeat: cached answers about the node stay valid
            return
        self._cache.set_node(new)
        for event in cluster_events.node_changes(old, new):
            self._queue.move_all(event, old, new)

    def _node_deleted(self, deleted: Deleted) -> None:
        node = last_known_state(deleted)
        if node is None:
            return
        self._cache.remove_node(name_of(node))
        self._queue.move_all(
            cluster_events.ClusterEvent(cluster_events.Subject.NODE, cluster_events.Action.DELETE), node, None
        )

    def _pod_added(self, pod: Json) -> None:
        if has_ended(pod):
            return
        if pod["spec"].get("nodeName"):
            self._assigned(PodInfo(pod))
        elif self._is_ours(pod):
            info = PodInfo(pod)
            self._nominator.set(info)
            self._queue.add(info)

    def _pod_updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._pod_deleted(old)
            self._pod_added(new)
        elif has_ended(new):
            if not has_ended(old):
                self._pod_deleted(old)
        elif not new["spec"].get("nodeName"):
            if self._is_ours(new):
                self._pending_updated(PodInfo(old), PodInfo(new))
        elif old["spec"].get("nodeName"):
            known = self._cache.pod(uid_of(new))
            if known is None:
                self._assigned(PodInfo(new))
            elif not self._cache.is_assumed(known.uid) and _is_same_to_others(known.pod, new):
                known.refresh(new)
            else:
                now = PodInfo(new)
                self._cache.set_pod(now)
                for event in cluster_events.pod_changes(PodInfo(old), now):
                    self._queue.move_all(event, old, new)
        else:
            self._queue.delete(uid_of(new))
            self._nominator.delete(uid_of(new))
            self._assigned(PodInfo(new))

    def _pod_deleted(self, deleted: Deleted) -> None:
        pod = last_known_state(deleted)
        if pod is None:
            return
        uid = uid_of(pod)
        self._queue.delete(uid)
        nominated = self._nominator.node_of(uid)
        self._nominator.delete(uid)
        known = self._cache.pod(uid)
        if known is not None:
            self._cache.remove_pod(uid)
            self._queue.move_all(cluster_events.POD_DELETED, known.pod)
        elif nominated:
            priority = pod["spec"].get("priority") or 0
            self._queue.move_all(cluster_events.POD_DELETED, pod, only=lambda waiting: waiting.priority <= priority)

    def _assigned(self, pod: PodInfo) -> None:
        self._cache.set_pod(pod)
        self._queue.move_all(cluster_events.POD_ADDED, None, pod.pod)

    def _pending_updated(self, old: PodInfo, new: PodInfo) -> None:
        if self._cache.is_assumed(new.uid):
            return
        if old.nominated_node or new.nominated_node:
            # Both names are empty while the nomination is not written yet: keep the nomination then.
            self._nominator.set(new)
        self._queue.update(old, new)
        if old.nominated_node and old.nominated_node != new.nominated_node:
            self._queue.move_all(
                cluster_events.POD_DELETED, old.pod, only=lambda waiting: waiting.priority <= old.priority
            )

    def _is_ours(self, pod: Json) -> bool:
        return (pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER) in self._profiles


def _schedulable_part(node: Json) -> tuple[object, ...]:
    status = node.get("status") or {}
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    meta = node["metadata"]
    return (
        *(node.get("spec"), meta.get("labels"), meta.get("annotations")),
        *(status.get("allocatable"), status.get("images"), conditions),
    )


def _is_same_to_others(old: Json, new: Json) -> bool:
    """Return whether only the pod's status changed, without its container resources."""
    before, after = old["metadata"], new["metadata"]
    return (
        before.get("labels") == after.get("labels")
        and before.get("deletionTimestamp") == after.get("deletionTimestamp")
        and old["spec"] == new["spec"]
        and _resources(old) == _resources(new)
    )


def _resources(pod: Json) -> list[object]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return [
        (status.get("resources"), status.get("allocatedResources")) for status in statuses if status.get("resources")
    ]
