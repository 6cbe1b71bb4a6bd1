"""What the informers tell of, and which DaemonSets must be looked at for it."""

from __future__ import annotations

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.daemon.node_fit import NodeFits
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.controllers.workloads.pacing import Pacing
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.nodes import taints_of
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import is_ready, node_name
from pilothouse.machinery.objects import Json, labels_of, name_of, resource_version_of, uid_of

_KIND = "DaemonSet"
_ON_NODE = "daemonPodsOnNode"
"""Pods by the uid of their DaemonSet and the node that they are on."""
_SKEW = 1.0
"""Added to the time after which a pod is available, so that it surely is."""


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
        self._sets, self._pods, self._owners = sets, pods, OwnerLookup(sets, _KIND)
        if _ON_NODE not in pods.indexer.indexers:
            pods.add_indexers({_ON_NODE: _on_node})
        sets.add_event_handler(
            ResourceEventHandlerFuncs(add=self._enqueue, update=self._set_updated, delete=self._set_deleted)
        )
        pods.add_event_handler(
            ResourceEventHandlerFuncs(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)
        )
        revisions.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._revision_added, update=self._revision_updated, delete=self._revision_deleted
            )
        )
        nodes.add_event_handler(ResourceEventHandlerFuncs(add=self._node_changed, update=self._node_updated))

    def _enqueue(self, *daemon_sets: Json) -> None:
        for each in daemon_sets:
            self._pacing.add(meta_namespace_key(each))

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

    def _pod_added(self, pod: Json) -> None:
        if is_deleting(pod):
            self._pod_deleted(pod)
            return
        if (owner := self._owners.owner_of(pod)) is not None:
            self._expectations.creation_observed(meta_namespace_key(owner))
        self._enqueue(*self._owners.concerned_by_addition(pod))

    def _pod_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if is_deleting(new):
            self._pod_deleted(new)
            return
        concerned = self._owners.concerned_by_change(old, new)
        self._enqueue(*concerned)
        if is_ready(new) and not is_ready(old):
            for each in concerned:
                if seconds := each["spec"].get("minReadySeconds"):
                    self._queue.add_after(meta_namespace_key(each), seconds + _SKEW)

    def _pod_deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is None or (owner := self._owners.owner_of(pod)) is None:
            return
        self._expectations.deletion_observed(meta_namespace_key(owner), uid_of(pod))
        self._enqueue(owner)

    def _revision_added(self, revision: Json) -> None:
        """One that a set has made itself is no news to it."""
        if is_deleting(revision):
            self._revision_deleted(revision)
        elif controller_of(revision) is None:
            self._enqueue(*self._owners.adopters_of(revision))

    def _revision_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) != resource_version_of(new):
            self._enqueue(*self._owners.concerned_by_change(old, new))

    def _revision_deleted(self, deleted: Deleted) -> None:
        if (revision := last_known_state(deleted)) is not None and (
            owner := self._owners.owner_of(revision)
        ) is not None:
            self._enqueue(owner)

    def _node_updated(self, old: Json, new: Json) -> None:
        if labels_of(old) != labels_of(new) or taints_of(old) != taints_of(new):
            self._node_changed(new)

    def _node_changed(self, node: Json) -> None:
        """Enqueue the sets that lack a pod on the node, have one that may not stay, or believe one to be misplaced."""
        for daemon_set in self._sets.indexer.list():
            fit = self._fits.of(daemon_set).of(node)
            if self._pods.indexer.by_index(_ON_NODE, f"{uid_of(daemon_set)}/{name_of(node)}"):
                is_concerned = not fit.may_stay or (daemon_set.get("status") or {}).get("numberMisscheduled")
            else:
                is_concerned = fit.should_run
            if is_concerned:
                self._enqueue(daemon_set)


def _on_node(pod: Json) -> tuple[str, ...]:
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != _KIND or not node_name(pod):
        return ()
    return (f"{owner.get('uid')}/{node_name(pod)}",)
