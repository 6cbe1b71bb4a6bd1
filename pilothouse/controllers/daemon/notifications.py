"""Event handlers that enqueue the DaemonSets affected by a DaemonSet, pod, revision or node."""

from __future__ import annotations

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.daemon.node_fit import NodeFits
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.notifications import OwnedNotifications, PodNotifications
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.controllers.workloads.pacing import Pacing
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.nodes import taints_of
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.objects import Json, labels_of, name_of, part, uid_of

_KIND = "DaemonSet"
_ON_NODE = "daemonPodsOnNode"
"""Index of pods by DaemonSet uid and node."""
_SKEW = 1.0
"""Seconds added to minReadySeconds, to tolerate clock skew."""


class Notifications:
    def __init__(
        self, queue: RateLimitingQueue[str], pacing: Pacing, expectations: ControllerExpectations, fits: NodeFits
    ) -> None:
        self._queue = queue
        self._pacing = pacing
        self._expectations = expectations
        self._fits = fits

    def follow(
        self,
        *,
        sets: SharedIndexInformer,
        pods: SharedIndexInformer,
        nodes: SharedIndexInformer,
        revisions: SharedIndexInformer,
    ) -> None:
        """Add handlers to the informers."""
        self._sets, self._pods, owners = sets, pods, OwnerLookup(sets, _KIND)
        if _ON_NODE not in pods.indexer.indexers:
            pods.add_indexers({_ON_NODE: _on_node})
        sets.add_event_handler(
            ResourceEventHandlerFuncs(add=self._enqueue, update=self._set_updated, delete=self._set_deleted)
        )
        of_pods = PodNotifications(owners, self._queue, self._pacing, expectations=self._expectations, skew=_SKEW)
        pods.add_event_handler(of_pods.handlers())
        revisions.add_event_handler(_RevisionNotifications(owners, self._pacing.add).handlers())
        nodes.add_event_handler(ResourceEventHandlerFuncs(add=self._node_changed, update=self._node_updated))

    def _enqueue(self, daemon_set: Json) -> None:
        self._pacing.add(meta_namespace_key(daemon_set))

    def _set_updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._set_deleted(old)
        self._enqueue(new)

    def _set_deleted(self, deleted: Deleted) -> None:
        if (last := last_known_state(deleted)) is not None:
            self._expectations.forget(meta_namespace_key(last))
            self._pacing.forget(meta_namespace_key(last))
            self._fits.forget(last)
            self._enqueue(last)

    def _node_updated(self, old: Json, new: Json) -> None:
        if labels_of(old) != labels_of(new) or taints_of(old) != taints_of(new):
            self._node_changed(new)

    def _node_changed(self, node: Json) -> None:
        """Enqueue DaemonSets with a missing pod, a pod that must go, or a misscheduled pod on the node."""
        for daemon_set in self._sets.indexer.list():
            fit = self._fits.of(daemon_set).of(node)
            if self._pods.indexer.by_index(_ON_NODE, f"{uid_of(daemon_set)}/{name_of(node)}"):
                is_concerned = not fit.may_stay or part(daemon_set, "status").get("numberMisscheduled")
            else:
                is_concerned = fit.should_run
            if is_concerned:
                self._enqueue(daemon_set)


class _RevisionNotifications(OwnedNotifications):
    def added(self, obj: Json) -> None:
        """Enqueue potential adopters of an orphaned revision; an owned revision enqueues nothing."""
        if is_deleting(obj):
            self.deleted(obj)
        elif controller_of(obj) is None:
            self.enqueue(self._owners.adopters_of(obj))


def _on_node(pod: Json) -> tuple[str, ...]:
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != _KIND or not node_name(pod):
        return ()
    return (f"{owner.get('uid')}/{node_name(pod)}",)
