"""Which deployments are to be looked at when they, their replica sets or their pods change."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller.enqueue import enqueue_keys
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.deployment.fenceposts import RECREATE, strategy_of
from pilothouse.controllers.workloads.owners import CONTROLLER_UID_INDEX, controller_of
from pilothouse.machinery.objects import Json, labels_of, metadata, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.selectors.errors import InvalidSelector
from pilothouse.machinery.selectors.label_selector import from_label_selector


class Notifications:
    """The informers of replica sets and pods must be indexed by controller."""

    def __init__(
        self,
        queue: RateLimitingQueue[str],
        *,
        deployments: SharedIndexInformer,
        replica_sets: SharedIndexInformer,
        pods: SharedIndexInformer,
    ) -> None:
        self._queue = queue
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods

    def of_deployments(self) -> ResourceEventHandlerFuncs:
        return enqueue_keys(self._queue)

    def of_replica_sets(self) -> ResourceEventHandlerFuncs:
        return ResourceEventHandlerFuncs(add=self._set_added, update=self._set_updated, delete=self._set_deleted)

    def of_pods(self) -> ResourceEventHandlerFuncs:
        """Their replica sets tell everything else."""
        return ResourceEventHandlerFuncs(delete=self._pod_deleted)

    def _set_added(self, replica_set: Json) -> None:
        if controller_of(replica_set) is not None:
            self._enqueue_owner(replica_set)
        elif not metadata(replica_set).get("deletionTimestamp"):
            self._enqueue_matching(replica_set)

    def _set_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        owner, before = controller_of(new), controller_of(old)
        if before is not None and before != owner:
            self._enqueue_owner(old)
        if owner is not None:
            self._enqueue_owner(new)
        elif before is not None or labels_of(old) != labels_of(new):
            self._enqueue_matching(new)

    def _set_deleted(self, deleted: Deleted) -> None:
        if (replica_set := last_known_state(deleted)) is not None:
            self._enqueue_owner(replica_set)

    def _pod_deleted(self, deleted: Deleted) -> None:
        """A deployment that recreates its pods waits for the last of the old ones."""
        pod = last_known_state(deleted)
        replica_set = None if pod is None else _owner(pod, "ReplicaSet", self._replica_sets)
        deployment = None if replica_set is None else _owner(replica_set, "Deployment", self._deployments)
        if deployment is None or strategy_of(deployment) != RECREATE:
            return
        if not any(self._pods_of(deployment)):
            self._queue.add(meta_namespace_key(deployment))

    def _pods_of(self, deployment: Json) -> Iterator[Json]:
        for replica_set in self._replica_sets.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(deployment)):
            yield from self._pods.indexer.by_index(CONTROLLER_UID_INDEX, uid_of(replica_set))

    def _enqueue_owner(self, replica_set: Json) -> None:
        deployment = _owner(replica_set, "Deployment", self._deployments)
        if deployment is not None:
            self._queue.add(meta_namespace_key(deployment))

    def _enqueue_matching(self, orphan: Json) -> None:
        labels = labels_of(orphan)
        for deployment in self._deployments.indexer.by_index(NAMESPACE_INDEX, namespace_of(orphan)) if labels else ():
            try:
                selector = from_label_selector(deployment["spec"].get("selector"))
            except InvalidSelector:
                continue
            if not selector.empty and selector.matches(labels):
                self._queue.add(meta_namespace_key(deployment))


def _owner(obj: Json, kind: str, owners: SharedIndexInformer) -> Json | None:
    """The owner of that kind that controls the object, if it is there and not just another of its name."""
    reference = controller_of(obj)
    if reference is None or reference.get("kind") != kind:
        return None
    found = owners.indexer.get_by_key(f"{namespace_of(obj)}/{reference['name']}")
    return found if found is not None and uid_of(found) == reference.get("uid") else None
