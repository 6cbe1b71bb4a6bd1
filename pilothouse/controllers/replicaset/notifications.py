"""Which replica sets are to be looked at when a set or a pod changes, and what of the expected has come to be."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import deletion_handling_key, last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.replicaset.kind import ReplicatedKind
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owners import controller_of
from pilothouse.controllers.workloads.pod_state import is_deleted, is_ready
from pilothouse.machinery.objects import Json, labels_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.selectors.errors import InvalidSelector

_SMALL = 20
_GATHERED = 0.00005
_LONGEST = 0.1
"""Looking at a set takes as long as it has pods. So changes of the pods of a large one are gathered for a moment: 50
microseconds for each pod, and a tenth of a second at most."""


class Notifications:
    def __init__(
        self,
        kind: ReplicatedKind,
        queue: RateLimitingQueue[str],
        expectations: ControllerExpectations,
        *,
        replica_sets: SharedIndexInformer,
    ) -> None:
        self._kind = kind
        self._queue = queue
        self._expectations = expectations
        self._replica_sets = replica_sets

    def of_replica_sets(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._enqueue, update=self._set_updated, delete=self._set_deleted)

    def of_pods(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)

    def _set_updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._set_deleted(old)
        self._enqueue(new)

    def _set_deleted(self, deleted: Deleted) -> None:
        """Another of the same name starts afresh."""
        key = deletion_handling_key(deleted)
        self._expectations.forget(key)
        self._queue.add(key)

    def _pod_added(self, pod: Json) -> None:
        if is_deleted(pod):
            # After a restart, pods are first seen as they are: this one was not made just now.
            self._pod_deleted(pod)
        elif (reference := controller_of(pod)) is None:
            self._enqueue_matching(pod)
        elif (replica_set := self._resolved(pod, reference)) is not None:
            self._expectations.creation_observed(meta_namespace_key(replica_set))
            self._gather(replica_set)

    def _pod_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if is_deleted(new):
            # Others are made at once, and not only when the kubelet is done with this one.
            self._pod_deleted(new)
            if labels_of(old) != labels_of(new):
                self._pod_deleted(old)
            return
        reference, before = controller_of(new), controller_of(old)
        if before is not None and before != reference and (loser := self._resolved(old, before)) is not None:
            self._enqueue(loser)
        if reference is None:
            if before is not None or labels_of(old) != labels_of(new):
                self._enqueue_matching(new)
        elif (replica_set := self._resolved(new, reference)) is not None:
            self._gather(replica_set)
            self._enqueue_when_available(replica_set, old, new)

    def _enqueue_when_available(self, replica_set: Json, old: Json, new: Json) -> None:
        seconds = replica_set["spec"].get("minReadySeconds") or 0
        if seconds > 0 and is_ready(new) and not is_ready(old):
            self._queue.add_after(meta_namespace_key(replica_set), seconds)

    def _pod_deleted(self, deleted: Deleted) -> None:
        pod = last_known_state(deleted)
        reference = None if pod is None else controller_of(pod)
        if pod is None or reference is None or (replica_set := self._resolved(pod, reference)) is None:
            return
        self._expectations.deletion_observed(meta_namespace_key(replica_set), uid_of(pod))
        self._gather(replica_set)

    def _resolved(self, pod: Json, reference: Json) -> Json | None:
        """The set that the reference means, if it is there and not just another of its name."""
        if reference.get("kind") != self._kind.kind:
            return None
        found = self._replica_sets.indexer.get_by_key(f"{namespace_of(pod)}/{reference['name']}")
        return found if found is not None and uid_of(found) == reference.get("uid") else None

    def _enqueue_matching(self, orphan: Json) -> None:
        for replica_set in self._matching(orphan):
            self._enqueue(replica_set)

    def _matching(self, orphan: Json) -> Iterator[Json]:
        labels = labels_of(orphan)
        for replica_set in self._replica_sets.indexer.by_index(NAMESPACE_INDEX, namespace_of(orphan)) if labels else ():
            try:
                selector = self._kind.selector_of(replica_set)
            except InvalidSelector:
                continue
            if not selector.empty and selector.matches(labels):
                yield replica_set

    def _enqueue(self, replica_set: Json) -> None:
        self._queue.add(meta_namespace_key(replica_set))

    def _gather(self, replica_set: Json) -> None:
        count = replica_set["spec"]["replicas"]
        if count <= _SMALL:
            self._enqueue(replica_set)
        else:
            self._queue.add_after(meta_namespace_key(replica_set), min(count * _GATHERED, _LONGEST))
