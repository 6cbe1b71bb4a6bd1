"""Which replica sets are to be looked at when a set or a pod changes, and what of the expected has come to be."""

from __future__ import annotations

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, last_known_state, meta_namespace_key
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.controllers.workloads.pacing import Pacing
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.objects import Json, labels_of, metadata, resource_version_of, uid_of


class Notifications:
    def __init__(
        self,
        owners: OwnerLookup,
        queue: RateLimitingQueue[str],
        pacing: Pacing,
        expectations: ControllerExpectations,
    ) -> None:
        self._owners = owners
        self._queue = queue
        self._pacing = pacing
        self._expectations = expectations

    def of_replica_sets(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._set_added, update=self._set_updated, delete=self._set_deleted)

    def of_pods(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)

    def _set_added(self, replica_set: Json) -> None:
        self._queue.add(meta_namespace_key(replica_set))

    def _set_updated(self, old: Json, new: Json) -> None:
        """A new spec is looked at without delay."""
        if uid_of(old) != uid_of(new):
            self._set_deleted(old)
        if metadata(old).get("generation") != metadata(new).get("generation"):
            self._set_added(new)
        else:
            self._enqueue(new)

    def _set_deleted(self, deleted: Deleted) -> None:
        """Another of the same name starts afresh."""
        key = deletion_handling_key(deleted)
        self._expectations.forget(key)
        self._pacing.forget(key)
        self._queue.add(key)

    def _pod_added(self, pod: Json) -> None:
        if is_deleting(pod):
            # After a restart, pods are first seen as they are: this one was not made just now.
            self._pod_deleted(pod)
            return
        if (owner := self._owners.owner_of(pod)) is not None:
            self._expectations.creation_observed(meta_namespace_key(owner))
        self._enqueue(*self._owners.concerned_by_addition(pod))

    def _pod_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if is_deleting(new):
            # Others are made at once, and not only when the kubelet is done with this one.
            self._pod_deleted(new)
            if labels_of(old) != labels_of(new):
                self._pod_deleted(old)
            return
        self._enqueue(*self._owners.concerned_by_change(old, new))
        if is_ready(new) and not is_ready(old) and (owner := self._owners.owner_of(new)) is not None:
            self._enqueue_when_available(owner)

    def _enqueue_when_available(self, replica_set: Json) -> None:
        if seconds := replica_set["spec"].get("minReadySeconds"):
            self._queue.add_after(meta_namespace_key(replica_set), seconds)

    def _pod_deleted(self, deleted: Deleted) -> None:
        pod = last_known_state(deleted)
        owner = None if pod is None else self._owners.owner_of(pod)
        if pod is not None and owner is not None:
            self._expectations.deletion_observed(meta_namespace_key(owner), uid_of(pod))
            self._enqueue(owner)

    def _enqueue(self, *replica_sets: Json) -> None:
        for each in replica_sets:
            self._pacing.add(meta_namespace_key(each))
